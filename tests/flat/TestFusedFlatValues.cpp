/// Ties, NaN, infinities and repeatability of IndexFusedFlat.

#include <cmath>
#include <thread>

#include <omp.h>

#include "tests/flat/FusedHarness.h"

namespace faiss_bits::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Few and many queries take different paths.
const std::vector<int64_t> kBatches = {1, 2, 16, 17, 60};

void expectSearches(const FusedData& data, const std::vector<int64_t>& ks) {
    const auto index = data.makeIndex();
    for (int64_t k : ks) {
        data.expectNearest(searchOnHost(*index, data.queries, k), k);
    }
}

TEST(FusedFlatValues, TiesGoToTheLowerId) {
    FusedCase c;
    c.n = 3000;
    c.d = 8;
    c.fill = Fill::Integers;
    for (int64_t q : kBatches) {
        c.q = q;
        for (const FusedCase& one : metricsOf(c)) {
            FusedData data(one);
            // Every vector thirty times, a hundred apart.
            for (int64_t i = 100; i < c.n; ++i) {
                for (int j = 0; j < c.d; ++j) {
                    data.vectors[i * c.d + j] =
                            data.vectors[(i % 100) * c.d + j];
                }
            }
            expectSearches(data, {1, 29, 31, 500, 2048, 2900, 3000});
        }
    }
}

TEST(FusedFlatValues, AllVectorsEqual) {
    FusedCase c;
    c.n = 5000;
    c.d = 4;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const FusedCase& one : metricsOf(c)) {
            FusedData data(one);
            std::fill(data.vectors.begin(), data.vectors.end(), 2.f);
            const auto index = data.makeIndex();
            for (int64_t k : {1, 100, 2048, 2049, 5000}) {
                const auto out = searchOnHost(*index, data.queries, k);
                for (int64_t i = 0; i < q * k; ++i) {
                    ASSERT_EQ(out.labels[i], i % k) << one << " k=" << k;
                }
            }
        }
    }
}

/// The nearest come last, or first: the worst and the best order for a heap.
TEST(FusedFlatValues, SortedVectors) {
    FusedCase c;
    c.n = 40000;
    c.d = 1;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const FusedCase& one : metricsOf(c)) {
            for (bool ascending : {true, false}) {
                FusedData data(one);
                for (int64_t i = 0; i < c.n; ++i) {
                    data.vectors[i] = float((ascending ? i : c.n - i) / 40);
                }
                std::fill(data.queries.begin(), data.queries.end(), 1.f);
                expectSearches(data, {300});
            }
        }
    }
}

TEST(FusedFlatValues, NanVectorsAreNoResults) {
    FusedCase c;
    c.n = 700;
    c.d = 12;
    c.fill = Fill::Integers;
    for (int64_t q : kBatches) {
        c.q = q;
        for (const FusedCase& one : metricsOf(c)) {
            FusedData data(one);
            for (int64_t i = 0; i < c.n; i += 7) {
                data.vectors[i * c.d + i % c.d] = i % 2 ? kNan : -kNan;
            }
            const auto index = data.makeIndex();
            // 600 numbers, then nothing.
            for (int64_t k : {1, 599, 600, 601, 700, 1000}) {
                const auto out = searchOnHost(*index, data.queries, k);
                data.expectNearest(out, k);
                for (int64_t i = 0; i < q * k; ++i) {
                    if (i % k < 600) {
                        ASSERT_NE(out.labels[i] % 7, 0) << one << " k=" << k;
                    } else {
                        ASSERT_EQ(out.labels[i], -1) << one << " k=" << k;
                    }
                }
            }
        }
    }
}

TEST(FusedFlatValues, NanIsInNoRange) {
    FusedCase c;
    c.n = 70;
    for (const FusedCase& one : metricsOf(c)) {
        FusedData data(one);
        for (int64_t i = 0; i < c.n; i += 7) {
            data.vectors[i * c.d + 3] = kNan;
        }
        const float all = data.largest() ? -kInf : kInf;
        faiss::RangeSearchResult found(c.q);
        data.makeIndex()->range_search(c.q, data.queries.data(), all, &found);
        EXPECT_EQ(int64_t(found.lims[c.q]), 60 * c.q) << one;
        data.expectInRange(found, all);
    }
}

TEST(FusedFlatValues, NanQueryLeavesTheOthersAlone) {
    FusedCase c;
    c.d = 6;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 9, 40}) {
        c.q = q;
        for (const FusedCase& one : metricsOf(c)) {
            FusedData data(one);
            data.queries[(q / 2) * c.d + 3] = kNan;
            expectSearches(data, {20});
        }
    }
}

TEST(FusedFlatValues, InfiniteVectors) {
    FusedCase c;
    c.n = 800;
    c.d = 5;
    for (int64_t q : kBatches) {
        c.q = q;
        for (const FusedCase& one : metricsOf(c)) {
            FusedData data(one);
            for (int64_t i = 3; i < c.n; i += 10) {
                data.vectors[i * c.d] = i % 20 == 3 ? kInf : -kInf;
            }
            expectSearches(data, {1, 100, 800});
        }
    }
}

/// Far from the origin the expanded form loses digits, but not its bound.
TEST(FusedFlatValues, DistancesAreNeverNegative) {
    FusedCase c;
    c.n = 2000;
    c.d = 64;
    c.q = 60;
    FusedData data(c);
    for (float& value : data.vectors) {
        value += 1000.f;
    }
    std::copy(
            data.vectors.begin(),
            data.vectors.begin() + c.q * c.d,
            data.queries.begin());
    const auto out = searchOnHost(*data.makeIndex(), data.queries, 100);
    data.expectNearest(out, 100);
    for (float distance : out.distances) {
        ASSERT_GE(distance, 0.f);
    }
}

/// Same bits on every run and for every number of threads.
TEST(FusedFlatValues, SameBitsEveryRun) {
    FusedCase c;
    c.n = 20000;
    c.d = 24;
    const int before = omp_get_max_threads();
    for (int64_t q : kBatches) {
        c.q = q;
        for (const FusedCase& one : metricsOf(c)) {
            const FusedData data(one);
            const auto index = data.makeIndex();
            for (int64_t k : {10, 3000}) {
                const auto first = searchOnHost(*index, data.queries, k);
                for (int threads : {1, 2, 3, 7}) {
                    omp_set_num_threads(threads);
                    EXPECT_TRUE(sameOutput(
                            searchOnHost(*index, data.queries, k), first))
                            << one << " k=" << k << " threads=" << threads;
                }
                omp_set_num_threads(before);
            }
        }
    }
}

/// A query's result does not depend on its companions. With integers the two
/// forms of a distance agree to the bit, so this is exact.
TEST(FusedFlatValues, ResultsDoNotDependOnTheBatch) {
    FusedCase c;
    c.n = 5000;
    c.d = 24;
    c.q = 70;
    c.fill = Fill::Integers;
    const int k = 50;
    for (const FusedCase& one : metricsOf(c)) {
        if (one.metric == faiss::METRIC_Lp) {
            continue; // powers are not exact
        }
        const FusedData data(one);
        const auto index = data.makeIndex();
        const auto together = searchOnHost(*index, data.queries, k);
        for (int64_t i : {0, 1, 35, 69}) {
            const std::vector<float> single(
                    data.queries.begin() + i * c.d,
                    data.queries.begin() + (i + 1) * c.d);
            const auto alone = searchOnHost(*index, single, k);
            for (int j = 0; j < k; ++j) {
                ASSERT_EQ(alone.labels[j], together.labels[i * k + j]);
                ASSERT_EQ(alone.distances[j], together.distances[i * k + j]);
            }
        }
    }
}

TEST(FusedFlatValues, SearchesAtTheSameTime) {
    FusedCase c;
    c.n = 4000;
    const FusedData data(c);
    const auto index = data.makeIndex();
    const auto expected = searchOnHost(*index, data.queries, 30);
    std::vector<std::thread> threads;
    std::vector<int> wrong(4);
    for (int& count : wrong) {
        threads.emplace_back([&] {
            for (int run = 0; run < 10; ++run) {
                const auto out = searchOnHost(*index, data.queries, 30);
                count += !sameOutput(out, expected);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, std::vector<int>(4));
}

} // namespace
} // namespace faiss_bits::test
