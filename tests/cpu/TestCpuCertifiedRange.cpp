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
    EXPECT_LT(stats.rescored, c.n); // not those of its scan
    EXPECT_EQ(found.limits[3], found.limits[4]);
}

/// Also where nothing is packed.
TEST(CpuCertifiedRangeStats, CountQueriesWithoutABoundAlike) {
    for (const cpu::Variant variant :
         {cpu::Variant::Direct, cpu::Variant::Buffered}) {
        for (const int threads : {1, 3}) {
            CpuCase c;
            c.mode = SearchMode::Certified;
            c.metric = Metric::InnerProduct;
            c.contents = Contents::Uniform;
            c.q = 300;
            c.n = 2000;
            const CpuData<float> data(c);
            cpu::Choice choice;
            choice.variant = variant;
            auto problem = data.problem(choice, threads);
            std::vector<float> queries(
                    problem.queries, problem.queries + c.q * c.d);
            std::fill_n(queries.data() + 203 * c.d, c.d, 1e38f);
            problem.queries = queries.data();
            SearchStats stats;
            problem.stats = &stats;
            cpu::runRange<float>(problem, 1e30f);
            EXPECT_EQ(stats.certified, c.q - 1);
            EXPECT_EQ(stats.repeated, 1);
            EXPECT_LT(stats.rescored, c.n);
        }
    }
}

/// A cosine has no bound where a single vector is too long: every query has
/// canonical distances of all vectors then, and those near it as well.
TEST(CpuCertifiedRangeStats, OneLongVectorTakesTheBoundOfEveryCosine) {
    for (const int64_t q : {1, 6, 100}) {
        for (const bool pick : {false, true}) {
            CpuCase c;
            c.mode = SearchMode::Certified;
            c.metric = Metric::Cosine;
            c.contents = Contents::Uniform;
            c.q = q;
            c.n = 900;
            c.d = 40;
            c.pickQueries = pick;
            const CpuData<float> data(c);
            auto problem = data.problem({}, 3);
            std::vector<float> vectors(
                    problem.vectors, problem.vectors + c.n * c.d);
            const auto keys = data.canonicalKeys(0);
            const float radius = 0.99f * float(keys[0].key);
            std::transform(
                    vectors.end() - c.d,
                    vectors.end(),
                    vectors.end() - c.d,
                    [](float x) { return x * 0x1p60f; });
            problem.vectors = vectors.data();
            SearchStats stats;
            problem.stats = &stats;
            const auto scaled = cpu::runRange<float>(problem, radius);
            const auto all = data.runRange(radius);
            EXPECT_EQ(stats.certified + stats.repeated, q);
            EXPECT_EQ(scaled.limits, all.limits);
            EXPECT_EQ(scaled.ids, all.ids);
            EXPECT_EQ(scaled.distances, all.distances);
        }
    }
}

/// More candidates of a query than are worked off together; the sample that
/// plans the search sees none of them.
TEST(CpuCertifiedRangeLengths, ManyCandidatesOfAQuery) {
    constexpr int64_t kQueries = 5, kVectors = 600000;
    const std::vector<float> queries(kQueries, 0);
    std::vector<float> vectors(kVectors, 9);
    for (int64_t i = 0; i < kVectors; ++i) {
        vectors[i] = i % 7 && i % 3125 ? 1e-6f * float(i) : 9.f;
    }
    cpu::Problem<float> problem;
    problem.numQueries = kQueries;
    problem.numVectors = kVectors;
    problem.d = 1;
    problem.queries = queries.data();
    problem.vectors = vectors.data();
    problem.interrupt = [] {};
    std::vector<idx_t> expected;
    for (int64_t i = 0; i < kVectors; ++i) {
        if (vectors[i] < 9) {
            expected.push_back(i);
        }
    }
    for (const int threads : {1, 3}) {
        problem.threads = threads;
        SearchStats stats;
        problem.stats = &stats;
        const auto found = cpu::runRange<float>(problem, 4.f);
        EXPECT_EQ(stats.rescored, kQueries * int64_t(expected.size()));
        for (int64_t q = 0; q < kQueries; ++q) {
            ASSERT_EQ(
                    std::vector<idx_t>(
                            found.ids.begin() + found.limits[q],
                            found.ids.begin() + found.limits[q + 1]),
                    expected);
        }
        for (size_t i = 0; i < found.ids.size(); ++i) {
            const double x = vectors[found.ids[i]];
            ASSERT_EQ(found.distances[i], float(x * x));
        }
    }
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
