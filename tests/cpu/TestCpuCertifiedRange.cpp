/// Certified range searches: every place and every bit is the oracle's.

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

class CpuCertifiedRange : public ::testing::TestWithParam<Metric> {};

template <class T>
::testing::AssertionResult isCanonical(
        const CpuData<T>& data,
        const cpu::RangeResult<T>& result,
        T radius) {
    const bool largest = isSimilarity(data.options().metric);
    for (idx_t i = 0; i < data.options().q; ++i) {
        std::vector<Ranked> expected;
        for (const Ranked& key : data.canonicalKeys(i)) {
            if (largest ? T(key.key) > radius : T(key.key) < radius) {
                expected.push_back(key);
            }
        }
        std::sort(
                expected.begin(),
                expected.end(),
                [](const Ranked& a, const Ranked& b) { return a.id < b.id; });
        const idx_t begin = result.limits[i];
        if (result.limits[i + 1] - begin != idx_t(expected.size())) {
            return ::testing::AssertionFailure()
                    << result.limits[i + 1] - begin << " results in place of "
                    << expected.size() << ", query " << i << ", "
                    << data.options().describe();
        }
        for (size_t j = 0; j < expected.size(); ++j) {
            const T distance = T(expected[j].key);
            if (result.ids[begin + j] != expected[j].id ||
                std::memcmp(
                        &result.distances[begin + j], &distance, sizeof(T)) !=
                        0) {
                return ::testing::AssertionFailure()
                        << "place " << j << " is ("
                        << result.distances[begin + j] << ", "
                        << result.ids[begin + j] << ") in place of ("
                        << distance << ", " << expected[j].id << "), query "
                        << i << ", " << data.options().describe();
            }
        }
    }
    return ::testing::AssertionSuccess();
}

TEST_P(CpuCertifiedRange, EveryPlaceOfEveryContents) {
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        int step = 0;
        for (const Contents contents : kAllContents) {
            for (const int64_t q : {1, 14}) {
                CpuCase c;
                c.mode = SearchMode::Certified;
                c.metric = GetParam();
                c.metricArg = step % 2 ? 1.5 : 3;
                c.contents = contents;
                c.q = q;
                c.n = 300;
                c.d = std::vector<int>{1, 3, 16, 33}[step % 4];
                c.vectorGap = step % 3;
                c.pickQueries = step % 4 == 1;
                c.pickVectors = step % 3 == 1;
                c.repeatVectors = step % 2;
                c.seed = ++step;
                const CpuData<T> data(c);
                // Distances that occur: they are not within themselves.
                std::vector<T> radii = {
                        T(0),
                        T(-1),
                        std::numeric_limits<T>::infinity(),
                        -std::numeric_limits<T>::infinity()};
                const auto keys = data.canonicalKeys(0);
                for (size_t i = 0; i < keys.size(); i += 1 + keys.size() / 3) {
                    radii.push_back(T(keys[i].key));
                }
                auto choices = choicesOf(cpu::Variant::Auto);
                for (const cpu::Variant variant : variantsOf(c.metric)) {
                    if (variant == cpu::Variant::Buffered ||
                        variant == cpu::Variant::Direct) {
                        const auto forced = choicesOf(variant);
                        choices.insert(
                                choices.end(), forced.begin(), forced.end());
                    }
                }
                choices.emplace_back();
                for (const cpu::Choice& choice : choices) {
                    for (const T radius : radii) {
                        const int threads = radius == 0 ? 3 : 1;
                        SCOPED_TRACE(describe(choice, threads));
                        ASSERT_TRUE(isCanonical(
                                data,
                                data.runRange(radius, choice, threads),
                                radius))
                                << "radius " << radius;
                    }
                }
            }
        }
    });
}

TEST(CpuCertifiedRangeStats, CountEveryQueryOnce) {
    CpuCase c;
    c.mode = SearchMode::Certified;
    c.contents = Contents::Uniform;
    c.q = 20;
    c.n = 2000;
    const CpuData<float> data(c);
    SearchStats stats;
    auto problem = data.problem({}, 2);
    problem.stats = &stats;
    cpu::runRange<float>(problem, 0.5f);
    EXPECT_EQ(stats.certified, c.q);
    EXPECT_EQ(stats.repeated, 0);
    const int64_t rescored = stats.rescored;
    // So many hits that canonical distances of all pairs need no candidates.
    cpu::runRange<float>(problem, 1e30f);
    EXPECT_EQ(stats.certified, 2 * c.q);
    EXPECT_EQ(stats.repeated, 0);
    EXPECT_EQ(stats.rescored, rescored);
}

/// Queries whose errors have no bound have canonical distances of all vectors.
TEST(CpuCertifiedRangeStats, CountQueriesWithoutABound) {
    CpuCase c;
    c.mode = SearchMode::Certified;
    c.contents = Contents::Uniform;
    c.q = 20;
    c.n = 2000;
    const CpuData<float> data(c);
    std::vector<float> queries;
    auto problem = data.problem({}, 1);
    for (int64_t i = 0; i < c.q; ++i) {
        const float* row = problem.queries + i * c.d;
        for (int p = 0; p < c.d; ++p) {
            queries.push_back(i == 3 ? 1e19f : row[p]);
        }
    }
    problem.queries = queries.data();
    problem.queryStride = c.d;
    SearchStats stats;
    problem.stats = &stats;
    const auto found = cpu::runRange<float>(problem, 0.5f);
    EXPECT_EQ(stats.certified, c.q - 1);
    EXPECT_EQ(stats.repeated, 1);
    EXPECT_GE(stats.rescored, c.n);
    EXPECT_EQ(found.limits[3], found.limits[4]);
}

/// What a product's error is bounded by, where vectors with NaN hide it.
TEST(CpuCertifiedRangeLengths, VectorsWithNanDoNotCount) {
    for (const int64_t q : {1, 5, 9, 30}) {
        CpuCase c;
        c.mode = SearchMode::Certified;
        c.metric = Metric::InnerProduct;
        c.contents = Contents::Uniform;
        c.q = q;
        c.n = 5000;
        const CpuData<float> data(c);
        auto problem = data.problem({}, 1);
        std::vector<float> vectors;
        for (int64_t i = 0; i < c.n; ++i) {
            for (int p = 0; p < c.d; ++p) {
                vectors.push_back(problem.vectors[i * c.d + p]);
            }
        }
        vectors[4500 * c.d] = std::numeric_limits<float>::quiet_NaN();
        problem.vectors = vectors.data();
        problem.vectorStride = c.d;
        SearchStats stats;
        problem.stats = &stats;
        const auto keys = data.canonicalKeys(0);
        const float radius = float(keys[keys.size() / 50].key);
        const auto with = cpu::runRange<float>(problem, radius);
        EXPECT_EQ(stats.repeated, 0);
        const auto all = data.runRange(radius);
        size_t at = 0;
        for (size_t i = 0; i < all.ids.size(); ++i) {
            if (all.ids[i] != 4500) {
                ASSERT_EQ(with.ids[at], all.ids[i]);
                ASSERT_EQ(with.distances[at++], all.distances[i]);
            }
        }
        EXPECT_EQ(with.ids.size(), at);
    }
}

/// At both sides of the numbers from which on a search goes another way, with
/// few and with many vectors in range: the same bits as by canonical distances
/// of each query alone.
TEST_P(CpuCertifiedRange, EdgesBetweenWays) {
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        const struct {
            int64_t q, n;
            int d;
        } shapes[] = {{2, 300, 5},    {3, 300, 5},  {4, 40, 390}, {5, 40, 390},
                      {8, 200, 31},   {8, 200, 32}, {9, 200, 32}, {8, 200, 20},
                      {9, 200, 20},   {15, 33, 40}, {16, 33, 40}, {17, 33, 40},
                      {65, 129, 9},   {3, 4095, 2}, {3, 4096, 2}, {3, 4097, 2},
                      {9, 4095, 2},   {9, 4096, 2}, {9, 4097, 2}, {1, 4097, 3},
                      {1, 2100, 130}, {12, 31, 3},  {12, 32, 3},  {200, 20, 7},
                      {13, 1, 3}};
        uint32_t seed = 1;
        for (const auto& shape : shapes) {
            CpuCase c;
            c.mode = SearchMode::Certified;
            c.metric = GetParam();
            c.metricArg = 1.5;
            c.contents = Contents::Uniform;
            c.q = shape.q;
            c.n = c.metric == Metric::Lp ? std::min<int64_t>(shape.n, 300)
                                         : shape.n;
            c.d = shape.d;
            c.repeatVectors = seed % 2;
            c.seed = seed++;
            const CpuData<T> data(c);
            auto keys = data.canonicalKeys(0);
            std::sort(
                    keys.begin(),
                    keys.end(),
                    [](const Ranked& a, const Ranked& b) {
                        return a.key < b.key;
                    });
            for (const double share : {0.01, 0.12, 0.3, 0.6, 0.99}) {
                const double part = isSimilarity(c.metric) ? 1 - share : share;
                const T radius = keys.empty() // all NaN
                        ? T(1)
                        : T(keys[size_t(part * (keys.size() - 1))].key);
                for (const int threads : {1, 3}) {
                    ASSERT_TRUE(isCanonical(
                            data, data.runRange(radius, {}, threads), radius))
                            << "radius " << radius << ", threads " << threads;
                }
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(
        Metrics,
        CpuCertifiedRange,
        ::testing::ValuesIn(allMetrics()),
        ::testing::PrintToStringParamName());

} // namespace
} // namespace faiss_bits::test
