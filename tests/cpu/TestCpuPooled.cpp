/// Certified searches whose threads finish the rows of several blocks together,
/// whatever the size of the machine's caches; and the sort at their end.

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/Certifier.h"
#include "kernels/cpu/KernelTable.h"
#include "kernels/cpu/Run.h"
#include "kernels/cpu/SearchPlan.h"
#include "kernels/cpu/SortEntries.h"
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

/// What is sorted: keys of one kind, ids ascending or not.
template <class T>
std::vector<T> keysOf(int kind, idx_t count, std::mt19937& random) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    std::uniform_real_distribution<T> uniform(T(40), T(43));
    std::vector<T> keys(count);
    for (idx_t i = 0; i < count; ++i) {
        const T value = uniform(random);
        switch (kind) {
            case 0:
                keys[i] = value;
                break;
            case 1:
                keys[i] = T(3);
                break;
            case 2: // a few far ones, so that the others share a bucket
                keys[i] = random() % 50 ? value : -value * T(1e20);
                break;
            case 3:
                keys[i] = T(random() % 5);
                break;
            case 4:
                keys[i] = random() % 4 ? value
                        : random() % 2 ? kInfinity
                                       : std::numeric_limits<T>::quiet_NaN();
                break;
            case 5:
                keys[i] = T(count - i);
                break;
            case 6: // both zeros are one key
                keys[i] = random() % 2 ? T(0) : -T(0);
                break;
            default: // denser and denser, of both signs
                keys[i] = T(1) / (value - T(41.5));
        }
    }
    return keys;
}

template <class T>
void expectSorted() {
    std::mt19937 random(5);
    for (idx_t count = 1; count < 5000;
         count += count < 300 ? 1 + count / 40 : count) {
        for (int kind = 0; kind < 8; ++kind) {
            for (const bool ascend : {true, false}) {
                const std::vector<T> keys = keysOf<T>(kind, count, random);
                std::vector<int> ids(count);
                std::iota(ids.begin(), ids.end(), 3);
                if (!ascend) {
                    std::shuffle(ids.begin(), ids.end(), random);
                }
                std::vector<cpu::OrderedEntry<T>> entries, other(count);
                for (idx_t i = 0; i < count; ++i) {
                    entries.push_back({keys[i], ids[i]});
                }
                // By the numbers, not by the bits of an entry.
                std::vector<int> order(count);
                std::iota(order.begin(), order.end(), 0);
                std::sort(order.begin(), order.end(), [&](int a, int b) {
                    const bool nanA = keys[a] != keys[a];
                    const bool nanB = keys[b] != keys[b];
                    if (nanA || nanB || keys[a] == keys[b]) {
                        return nanA != nanB ? nanB : ids[a] < ids[b];
                    }
                    return keys[a] < keys[b];
                });
                const cpu::OrderedEntry<T>* sorted = cpu::sortEntries<T>(
                        entries.data(),
                        other.data(),
                        count,
                        ascend,
                        cpu::orderRange(entries.data(), count));
                for (idx_t i = 0; i < count; ++i) {
                    ASSERT_EQ(ids[order[i]], int(sorted[i].id()))
                            << "kind " << kind << ", " << count
                            << " entries, place " << i;
                }
            }
        }
    }
}

TEST(CpuSort, OrdersByKeyThenId) {
    expectSorted<float>();
    expectSorted<double>();
}

} // namespace
} // namespace faiss_bits::test
