/// Certified searches whose threads finish the rows of several blocks together,
/// whatever the size of the machine's caches.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/Certifier.h"
#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/Run.h"
#include "kernels/cpu/SearchPlan.h"
#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

struct PooledSearch {
    cpu::Variant variant;
    idx_t pooled;
    int threads;
};

/// One sweep of all queries with the plan of the choice and so many rows to a
/// selection. Rows without a result stay as they are.
std::vector<cpu::Outcome> runPooled(
        const CpuData<float>& data,
        const CpuCase& c,
        const PooledSearch& search,
        CpuResult<float>& result) {
    cpu::Choice choice;
    choice.variant = search.variant;
    choice.queryBlock = 16;
    choice.vectorBlock = int(c.n); // all, whatever the machine is
    auto problem = data.problem(choice, search.threads);
    problem.mode = SearchMode::Certified;
    problem.outDistances = result.distances.data();
    problem.outIds = result.ids.data();
    cpu::Setup<float> setup = cpu::checkProblem(problem, false);
    cpu::Lengths<float> lengths;
    setup.lengths = &lengths;
    const idx_t candidates =
            cpu::withMargin(c.k, {setup.metric, setup.depth, c.n});
    cpu::Plan plan = cpu::planSearch(setup, problem, candidates, false);
    plan.acrossVectors = false;
    plan.selectsByBlock = true;
    plan.pooledQueries = search.pooled;
    cpu::Certifier<float> certifier(
            cpu::canonicalKernelsFor<float>(setup.metric, setup.target),
            c.k,
            cpu::SweepKind{setup.metric, setup.depth, c.n});
    certifier.outcomes.assign(c.q, cpu::Outcome::Open);
    const cpu::KnnOutput<float> out = {
            problem.outDistances, problem.outIds, c.k, nullptr};
    cpu::runSweep(setup, plan, candidates, out, &certifier);
    return certifier.outcomes;
}

TEST(CpuPooled, RowsOfSeveralBlocksHaveTheirOwnResults) {
    for (const Contents contents :
         {Contents::Uniform, Contents::Far, Contents::FewDistinct}) {
        CpuCase c;
        c.mode = SearchMode::Certified;
        c.contents = contents;
        c.q = 331; // not in whole tiles
        c.n = 1200;
        c.d = 24;
        c.k = 20;
        c.pickQueries = true;
        const CpuData<float> data(c);
        const CpuResult<float> expected = data.canonicalResult();
        for (const cpu::Variant variant :
             {cpu::Variant::Buffered, cpu::Variant::Var1}) {
            for (const idx_t pooled : {1, 50, 100, 331, 1000}) {
                for (const int threads : {1, 2, 3}) {
                    SCOPED_TRACE(
                            c.describe() + " " + nameOf(variant) + " " +
                            std::to_string(pooled) + " rows, " +
                            std::to_string(threads) + " threads");
                    CpuResult<float> result;
                    result.distances.assign(c.q * c.k, -7);
                    result.ids.assign(c.q * c.k, -7);
                    const auto outcomes = runPooled(
                            data, c, {variant, pooled, threads}, result);
                    idx_t done = 0;
                    for (idx_t i = 0; i < c.q; ++i) {
                        const bool isDone = outcomes[i] == cpu::Outcome::Done;
                        done += isDone;
                        for (idx_t j = i * c.k; j < (i + 1) * c.k; ++j) {
                            ASSERT_EQ(
                                    isDone ? expected.ids[j] : -7,
                                    result.ids[j])
                                    << i;
                            ASSERT_EQ(
                                    isDone ? expected.distances[j] : -7,
                                    result.distances[j])
                                    << i;
                        }
                    }
                    if (contents == Contents::Uniform) {
                        EXPECT_EQ(c.q, done);
                    }
                }
            }
        }
    }
}

/// One more where an error of the k-th may hold some, on both sides of that.
TEST(CpuMargin, OneMoreWhereSomeAreWithinAnError) {
    const auto margin = [](idx_t k, int depth) {
        return cpu::withMargin(k, {cpu::KernelMetric::L2, depth, 100000}) - k;
    };
    EXPECT_EQ(margin(1, 16), 1);
    EXPECT_EQ(margin(10, 75), 2);
    EXPECT_EQ(margin(10, 76), 3);
    EXPECT_EQ(margin(10, 128), 3);
}

} // namespace
} // namespace faiss_bits::test
