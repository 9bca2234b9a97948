/// Range search: order, limits, and what lies on the radius.

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpu/CpuHarness.h"

namespace faiss_bits::test {
namespace {

class CpuRange : public ::testing::TestWithParam<Metric> {};

/// A radius that some of the distances of query 0 equal, where they are exact.
template <class T>
T middleRadius(const CpuData<T>& data, int part) {
    std::vector<T> keys;
    for (const auto& accepted : data.candidates(0).keys) {
        if (!accepted.nan) {
            keys.push_back(accepted.least);
        }
    }
    std::sort(keys.begin(), keys.end());
    return keys.empty() ? T(1) : keys[keys.size() * part / 4];
}

TEST_P(CpuRange, AgreesWithTheReference) {
    const bool isPower = GetParam() == Metric::Lp;
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        int step = 0;
        for (int64_t q : {1, 2, 13, 40}) {
            for (int64_t n : {1, 15, 16, 17, 33, 500}) {
                CpuCase c;
                c.metric = GetParam();
                c.metricArg = 1.5;
                c.contents = kAllContents[step % kAllContents.size()];
                c.q = q;
                c.n = isPower ? std::min<int64_t>(n, 100) : n;
                c.d = std::vector<int>{1, 3, 16, 33}[step % 4];
                c.vectorGap = step % 3;
                c.pickQueries = step % 4 == 1;
                c.pickVectors = step % 3 == 1;
                c.repeatVectors = step % 2;
                c.seed = ++step;
                const CpuData<T> data(c);
                auto choices = choicesOf(cpu::Variant::Buffered);
                for (const auto& direct : choicesOf(cpu::Variant::Direct)) {
                    choices.push_back(direct);
                }
                choices.emplace_back();
                for (const cpu::Choice& choice : choices) {
                    for (int part : {1, 2, 3}) {
                        const T radius = middleRadius(data, part);
                        SCOPED_TRACE(describe(choice, part));
                        ASSERT_TRUE(data.checkRange(
                                data.runRange(radius, choice, part), radius))
                                << "radius " << radius;
                    }
                }
            }
        }
    });
}

/// The radius itself is outside: d < radius, or similarity > radius.
TEST_P(CpuRange, TheRadiusIsOutside) {
    if (GetParam() == Metric::Cosine || GetParam() == Metric::Lp) {
        return; // rounded; AgreesWithTheReference allows for it
    }
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        const std::vector<T> vectors = {3, 1, 2, 2, 1, 3};
        const T query = isSimilarity(GetParam()) ? 1 : 0;
        cpu::Problem<T> p;
        p.metric = GetParam();
        p.numQueries = 1;
        p.numVectors = vectors.size();
        p.d = 1;
        p.queries = &query;
        p.vectors = vectors.data();
        const T two = p.metric == Metric::L2 ? 4 : 2;
        const auto result = cpu::runRange(p, two);
        const bool similar = isSimilarity(p.metric);
        EXPECT_EQ(result.limits, (std::vector<idx_t>{0, 2}));
        EXPECT_EQ(
                result.ids,
                (similar ? std::vector<idx_t>{0, 5}
                         : std::vector<idx_t>{1, 4}));
        EXPECT_EQ(result.distances, (std::vector<T>(2, similar ? T(3) : T(1))));
    });
}

/// None, and all that is a number; the infinite radius leaves out infinities.
TEST_P(CpuRange, NoneAndAll) {
    forBothTypes([&](auto zero) {
        using T = decltype(zero);
        const T infinite = std::numeric_limits<T>::infinity();
        const T wide = isSimilarity(GetParam()) ? -infinite : infinite;
        for (Contents contents :
             {Contents::Uniform, Contents::Mixed, Contents::FewNumbers}) {
            CpuCase c;
            c.metric = GetParam();
            c.metricArg = 3;
            c.contents = contents;
            c.q = 14;
            c.n = 130;
            const CpuData<T> data(c);
            // Nothing is nearer than a radius that is no number.
            for (T least : {-wide, std::numeric_limits<T>::quiet_NaN()}) {
                const auto none = data.runRange(least);
                EXPECT_EQ(none.limits, std::vector<idx_t>(c.q + 1, 0));
                EXPECT_TRUE(none.ids.empty() && none.distances.empty());
            }
            const auto all = data.runRange(wide);
            ASSERT_TRUE(data.checkRange(all, wide));
            if (contents == Contents::Uniform) {
                EXPECT_EQ(all.limits[c.q], c.q * c.n);
            }
        }
    });
}

TEST_P(CpuRange, ThreadsAndBlocksNeverChangeTheResult) {
    for (int64_t q : {1, 3, 60}) {
        CpuCase c;
        c.metric = GetParam();
        c.metricArg = 3;
        c.contents = Contents::Uniform;
        c.q = q;
        c.n = 900;
        c.d = 20;
        const CpuData<float> data(c);
        const float radius = middleRadius(data, 2);
        const auto one = data.runRange(radius);
        for (int threads : {1, 2, 3, 9}) {
            const auto other = data.runRange(radius, {}, threads);
            ASSERT_EQ(other.limits, one.limits) << threads << " threads";
            ASSERT_EQ(other.ids, one.ids) << threads << " threads";
            ASSERT_EQ(other.distances, one.distances) << threads << " threads";
        }
        cpu::Choice blocks;
        blocks.queryBlock = 24;
        blocks.vectorBlock = 64;
        blocks.depthBlock = 8;
        ASSERT_TRUE(data.checkRange(data.runRange(radius, blocks, 2), radius));
    }
}

INSTANTIATE_TEST_SUITE_P(
        Cpu,
        CpuRange,
        ::testing::ValuesIn(kCpuMetrics),
        [](const auto& info) { return metricName(info.param); });

} // namespace
} // namespace faiss_bits::test
