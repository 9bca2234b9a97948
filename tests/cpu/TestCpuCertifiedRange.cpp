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
    // So many hits that all distances are computed anew.
    cpu::runRange<float>(problem, 1e30f);
    EXPECT_EQ(stats.certified, c.q);
    EXPECT_EQ(stats.repeated, c.q);
}

INSTANTIATE_TEST_SUITE_P(
        Metrics,
        CpuCertifiedRange,
        ::testing::ValuesIn(allMetrics()),
        ::testing::PrintToStringParamName());

} // namespace
} // namespace faiss_bits::test
