/// Vectors of words by every metric and target: every place and every bit is
/// the oracle's.

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/Knn.h"
#include "kernels/cpu/Targets.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/WordVectors.h"
#include "tests/cpu/CpuCases.h"

namespace faiss_bits::test {
namespace {

class CpuWords : public ::testing::TestWithParam<Metric> {};

TEST_P(CpuWords, EveryPlace) {
    const Metric metric = GetParam();
    const float p = 2.5f;
    const int64_t n = 1500;
    const int64_t mostQueries = 18;
    const int64_t mostK = 300;
    for (const WordCounts counts : {WordCounts::Letters, WordCounts::Pairs}) {
        const int d = dimensionsOf(counts);
        const auto vectors = makeWordVectors(counts, n, 1);
        const auto queries = makeWordVectors(counts, mostQueries, 2);
        std::vector<std::vector<Ranked>> best;
        for (int64_t i = 0; i < mostQueries; ++i) {
            best.push_back(canonicalTopK(
                    metric,
                    p,
                    queries.data() + i * d,
                    vectors.data(),
                    n,
                    d,
                    mostK));
        }
        for (const int64_t q : {int64_t(1), int64_t(3), mostQueries}) {
            for (const int64_t k : {int64_t(1), int64_t(10), mostK}) {
                for (const std::string& target : cpu::targetNames()) {
                    SCOPED_TRACE(
                            ::testing::Message()
                            << "d=" << d << " q=" << q << " k=" << k << " "
                            << target);
                    std::vector<float> distances(q * k);
                    std::vector<idx_t> ids(q * k);
                    cpu::KnnProblem<float> problem;
                    problem.metric = metric;
                    problem.metricArg = p;
                    problem.numQueries = q;
                    problem.numVectors = n;
                    problem.d = d;
                    problem.queries = queries.data();
                    problem.vectors = vectors.data();
                    problem.k = k;
                    problem.outDistances = distances.data();
                    problem.outIds = ids.data();
                    problem.choice.target = target;
                    problem.threads = 1 + int(k % 3);
                    cpu::runKnn(problem);
                    for (int64_t i = 0; i < q; ++i) {
                        ASSERT_TRUE(isCanonical(
                                {best[i].begin(), best[i].begin() + k},
                                isSimilarity(metric),
                                distances.data() + i * k,
                                ids.data() + i * k,
                                k))
                                << "query " << i;
                    }
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Metrics,
        CpuWords,
        ::testing::ValuesIn(allMetrics()),
        ::testing::PrintToStringParamName());

/// They are what they are for: ties, equal vectors, empty ones.
TEST(WordVectors, ManyAreEquallyFar) {
    for (const WordCounts counts : {WordCounts::Letters, WordCounts::Pairs}) {
        const int64_t n = 3000;
        const int d = dimensionsOf(counts);
        const auto vectors = makeWordVectors(counts, n, 1);
        const auto queries = makeWordVectors(counts, 1, 2);
        const auto all = canonicalTopK(
                Metric::L2, 0, queries.data(), vectors.data(), n, d, n);
        ASSERT_EQ(int64_t(all.size()), n);
        int64_t different = 1, empty = 0;
        for (int64_t i = 1; i < n; ++i) {
            different += all[i].key != all[i - 1].key;
        }
        for (int64_t i = 0; i < n; ++i) {
            float sum = 0;
            for (int j = 0; j < d; ++j) {
                const float value = vectors[i * d + j];
                ASSERT_EQ(value, float(int(value)));
                sum += value;
            }
            empty += sum == 0;
        }
        EXPECT_LT(different, 200);
        EXPECT_GT(different, 10);
        // Every word has letters; some have no two common ones in a row.
        EXPECT_EQ(empty > 0, counts == WordCounts::Pairs);
    }
}

} // namespace
} // namespace faiss_bits::test
