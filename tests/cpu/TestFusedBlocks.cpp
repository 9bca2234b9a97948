/// Searches of several blocks: the edges between them, and blocks as the plan
/// wants them.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

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

INSTANTIATE_TEST_SUITE_P(
        Cpu,
        FusedBlocks,
        ::testing::ValuesIn(kFusedMetrics),
        [](const auto& info) { return metricName(info.param); });

} // namespace
} // namespace faiss_bits::test
