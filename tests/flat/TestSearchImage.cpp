/// The copy of the vectors that certified searches on tensor cores keep: it
/// follows the vectors, whatever changes them.

#include <random>
#include <tuple>

#include <faiss/IndexFlat.h>
#include <faiss/impl/AuxIndexStructures.h>

#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

std::vector<float> components(int64_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<float> x(count);
    for (float& one : x) {
        one = std::uniform_real_distribution<float>(0.f, 1.f)(random);
    }
    return x;
}

class SearchImages : public GpuTest {};

TEST_F(SearchImages, SmallFollowsTheVectors) {
    const int d = 12;
    const int64_t n = 9000;
    const auto queries = components(40 * d, 2);
    const auto first = components(n * d, 1);
    auto second = components(n * d, 3);
    for (float& x : second) {
        x = 100 - x;
    }
    const auto join = [](std::vector<float> a, const std::vector<float>& b) {
        a.insert(a.end(), b.begin(), b.end());
        return a;
    };
    for (faiss::MetricType metric :
         {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (bool useFloat16 : {false, true}) {
            GpuIndexBitsFlatConfig config;
            config.useFloat16 = useFloat16;
            GpuIndexBitsFlat index(sharedResources(), d, metric, config);
            config.keepSearchImage = false;
            const auto expectFresh = [&](const std::vector<float>& x) {
                GpuIndexBitsFlat fresh(sharedResources(), d, metric, config);
                fresh.add(int64_t(x.size()) / d, x.data());
                for (int again = 0; again < 2; ++again) {
                    EXPECT_TRUE(sameOutput(
                            searchOnHost(index, queries, 20),
                            searchOnHost(fresh, queries, 20)))
                            << "metric " << int(metric) << " float16 "
                            << useFloat16 << " n " << index.ntotal;
                }
                EXPECT_EQ(index.stats().repeated, fresh.stats().repeated);
                index.reset_stats();
            };
            index.add(n, first.data());
            expectFresh(first);
            index.add(n, second.data());
            expectFresh(join(first, second));
            index.reserve(50000);
            expectFresh(join(first, second));
            index.reset();
            index.add(n, second.data()); // as many as at first
            expectFresh(second);

            faiss::IndexFlat cpu(d, metric);
            cpu.add(n, first.data());
            index.copyFrom(&cpu);
            expectFresh(first);
            cpu.reset();
            cpu.add(n, second.data());
            index.GpuIndexFlat::copyFrom(&cpu); // at equal size
            expectFresh(second);
            index.copyFrom(&cpu);
            expectFresh(second);
        }
    }
}

/// Few queries use an image that is there, and get one when it is worth it.
TEST_F(SearchImages, SmallBatches) {
    const int d = 50;
    const int64_t n = 9000;
    const auto first = components(n * d, 1);
    const auto second = components(n * d, 3);
    for (faiss::MetricType metric :
         {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (int64_t q : {1, 3, 16}) {
            const auto queries = components(q * d, 2);
            GpuIndexBitsFlatConfig config;
            GpuIndexBitsFlat index(sharedResources(), d, metric, config);
            config.keepSearchImage = false;
            for (const auto& x : {first, second}) {
                index.reset();
                index.add(n, x.data());
                GpuIndexBitsFlat fresh(sharedResources(), d, metric, config);
                fresh.add(n, x.data());
                const auto expected = searchOnHost(fresh, queries, 20);
                for (int again = 0; again < 9; ++again) {
                    EXPECT_TRUE(sameOutput(
                            searchOnHost(index, queries, 20), expected))
                            << "metric " << int(metric) << " q " << q
                            << " search " << again;
                }
            }
        }
    }
}

/// A range search reads an image in the vectors' order, and k-NN searches one
/// of another order if they came first: each finds what an index without
/// images finds, whichever was asked for first.
TEST_F(SearchImages, SmallNeighboursAndRanges) {
    const int d = 20;
    const int64_t n = 9001;
    const int64_t q = 60;
    const auto vectors = components(n * d, 1);
    const auto queries = components(q * d, 2);
    const auto rangesOf = [&](const GpuIndexBitsFlat& index, float radius) {
        faiss::RangeSearchResult result(q);
        index.range_search(q, queries.data(), radius, &result);
        const size_t total = result.lims[q];
        return std::tuple(
                std::vector<size_t>(result.lims, result.lims + q + 1),
                std::vector<idx_t>(result.labels, result.labels + total),
                std::vector<float>(result.distances, result.distances + total));
    };
    for (faiss::MetricType metric :
         {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        const float radius = metric == faiss::METRIC_L2 ? 2.0f : 6.5f;
        GpuIndexBitsFlatConfig config;
        config.keepSearchImage = false;
        GpuIndexBitsFlat fresh(sharedResources(), d, metric, config);
        fresh.add(n, vectors.data());
        const auto ranges = rangesOf(fresh, radius);
        ASSERT_GT(std::get<0>(ranges).back(), size_t(q));
        const auto nearest = searchOnHost(fresh, queries, 20);
        config.keepSearchImage = true;
        for (bool rangesFirst : {false, true}) {
            GpuIndexBitsFlat index(sharedResources(), d, metric, config);
            index.add(n, vectors.data());
            for (int call = 0; call < 4; ++call) {
                if (call % 2 == int(!rangesFirst)) {
                    EXPECT_TRUE(rangesOf(index, radius) == ranges)
                            << "metric " << int(metric) << " call " << call;
                } else {
                    EXPECT_TRUE(sameOutput(
                            searchOnHost(index, queries, 20), nearest))
                            << "metric " << int(metric) << " call " << call;
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
