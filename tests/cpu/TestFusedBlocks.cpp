/// Searches of several blocks: the edges between them, and blocks as the plan
/// wants them.

#include <algorithm>
#include <atomic>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/FusedRun.h"
#include "tests/cpu/FusedHarness.h"

namespace faiss_bits::test {
namespace {

class FusedBlocks : public ::testing::TestWithParam<FusedMetric> {
   protected:
    /// Every variant, in blocks as given, on one target; {}: on the best.
    template <class T>
    void expectRight(const FusedCase& c, FusedChoice choice, int threads) {
        const FusedData<T> data(c);
        for (FusedVariant variant : kFusedVariants) {
            choice.variant = variant;
            ASSERT_TRUE(data.check(data.run(choice, threads)))
                    << describe(choice, threads);
        }
    }
};

/// One query more and less than the forced blocks of queries hold, and so for
/// vectors and components.
TEST_P(FusedBlocks, Edges) {
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        FusedCase c;
        c.metric = GetParam();
        c.metricArg = 3;
        for (FusedChoice choice : choicesOf(FusedVariant::Var1)) {
            const FusedPlan plan =
                    planFusedKnn(FusedData<T>(c).problem(choice, 1));
            const int rows = plan.tileQueries;
            const int columns = plan.tileVectors;
            ASSERT_GE(rows, 1);
            ASSERT_GE(columns, 1);
            choice.queryBlock = 2 * rows;
            choice.vectorBlock = 2 * columns;
            choice.depthBlock = 8;
            int step = 0;
            for (int sideQ : {-1, 0, 1}) {
                for (int sideN : {-1, 0, 1}) {
                    for (int sideD : {-1, 0, 1}) {
                        FusedCase edge = c;
                        edge.q = (2 + 2 * (step % 2)) * rows + sideQ;
                        edge.n = (2 + 4 * (step % 3)) * columns + sideN;
                        edge.d = 8 * (1 + step % 3) + sideD;
                        edge.k = step % 4 == 0 ? edge.n : 1 + step % 7;
                        edge.seed = ++step;
                        expectRight<T>(edge, choice, 1 + step % 2);
                        if (HasFatalFailure()) {
                            return;
                        }
                    }
                }
            }
        }
    });
}

/// Searches large enough to need several blocks of the plan's own; buffers and
/// heaps that fill many times; k of the size of n.
TEST_P(FusedBlocks, AsPlanned) {
    struct Size {
        int64_t q, n;
        int d;
        int64_t k;
    };
    // Powers take the reference and the kernels long.
    const bool isPower = GetParam() == FusedMetric::Lp;
    const std::vector<Size> sizes = isPower
            ? std::vector<Size>{{40, 1500, 5, 100}, {3, 1000, 260, 7}}
            : std::vector<Size>{
                      {300, 1999, 3, 10},
                      {30, 1999, 40, 1},
                      {30, 1999, 17, 1500},
                      {3, 1999, 20, 300},
                      {40, 150, 1025, 33},
                      {1, 60, 4000, 5}};
    uint32_t seed = 0;
    for (const Size& size : sizes) {
        for (Contents contents :
             {Contents::Descending, Contents::FewDistinct, Contents::Uniform}) {
            FusedCase c;
            c.metric = GetParam();
            c.metricArg = 1.5;
            c.q = size.q;
            c.n = size.n;
            c.d = size.d;
            c.k = size.k;
            c.contents = contents;
            c.seed = ++seed;
            if (seed % 3) {
                expectRight<float>(c, {}, 2);
            } else {
                expectRight<double>(c, {}, 2);
            }
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Where the packed vectors are one block, every block of queries has its own
/// selection; else a batch has one. Sizes at the edges of the blocks that the
/// schedule cuts: whole ones, and the smaller ones at the end.
TEST(FusedBlocksOfQueries, AgreeWithBatches) {
    for (FusedVariant variant : {FusedVariant::Buffered, FusedVariant::Var1}) {
        for (int64_t q :
             {1,
              11,
              12,
              13,
              23,
              24,
              25,
              47,
              48,
              49,
              95,
              96,
              97,
              143,
              144,
              145,
              300}) {
            FusedCase c;
            c.q = q;
            c.n = 700;
            c.d = 20;
            c.k = q % 2 ? 9 : 60;
            c.contents = q % 3 ? Contents::Uniform : Contents::FewDistinct;
            c.seed = uint32_t(q);
            const FusedData<float> data(c);
            FusedChoice choice;
            choice.variant = variant;
            choice.queryBlock = 24;
            FusedChoice inBatches = choice;
            inBatches.vectorBlock = 64;
            ASSERT_FALSE(
                    planFusedKnn(data.problem(inBatches, 1)).selectsByBlock);
            const auto expected = data.run(inBatches, 1);
            ASSERT_TRUE(data.check(expected)) << c.describe();
            for (int threads : {1, 2, 3, 5}) {
                const FusedPlan plan =
                        planFusedKnn(data.problem(choice, threads));
                ASSERT_TRUE(plan.selectsByBlock || plan.acrossVectors)
                        << toString(plan);
                ASSERT_TRUE(data.run(choice, threads) == expected)
                        << c.describe() << describe(choice, threads);
            }
        }
    }
}

/// Counts the vectors that a search packs.
struct PackCounter {
    static inline FusedCommonKernels<float> kernels;
    static inline std::atomic<int64_t> vectors;

    static void pack(const FusedPackJob<float>& job, FusedKernelMetric metric) {
        vectors += job.count;
        kernels.packVectors(job, metric);
    }

    static void watch(FusedSetup<float>& setup) {
        kernels = setup.common;
        vectors = 0;
        setup.common.packVectors = pack;
    }
};

/// Batches after the first find the vectors packed, where they are one block.
/// The plan is the test's, not that of the machine's caches and cores.
TEST(FusedBlocksOfQueries, LaterBatchesUseThePackedVectors) {
    FusedCase c;
    c.q = 600;
    c.n = 1000;
    c.d = 8;
    c.k = 5;
    c.contents = Contents::Uniform;
    const FusedData<float> data(c);
    for (FusedVariant variant :
         {FusedVariant::Buffered,
          FusedVariant::Var1,
          FusedVariant::Var5,
          FusedVariant::Var6}) {
        for (int threads : {1, 2, 5}) {
            for (int blocks : {1, 2}) {
                FusedChoice choice;
                choice.variant = variant;
                auto problem = data.problem(choice, threads);
                FusedResult<float> result{
                        std::vector<float>(c.q * c.k),
                        std::vector<idx_t>(c.q * c.k)};
                problem.outDistances = result.distances.data();
                problem.outIds = result.ids.data();
                FusedSetup<float> setup = checkFused(problem, false);
                FusedPlan plan = planFused(setup, problem, c.k, false);
                plan.threads = threads;
                plan.acrossVectors = plan.selectsByBlock = false;
                plan.batchQueries = 200;
                plan.vectorBlock = roundUp(c.n / blocks, plan.tileVectors);
                SCOPED_TRACE(toString(plan));
                PackCounter::watch(setup);
                runPlanned(problem, setup, plan);
                EXPECT_EQ(PackCounter::vectors, blocks == 1 ? c.n : 3 * c.n);
                ASSERT_TRUE(data.check(result));
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Cpu,
        FusedBlocks,
        ::testing::ValuesIn(kFusedMetrics),
        [](const auto& info) { return metricName(info.param); });

} // namespace
} // namespace faiss_bits::test
