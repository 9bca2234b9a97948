/// The reference of these tests against hand-written tables.

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpu/FusedCompare.h"
#include "tests/cpu/FusedHarness.h"
#include "tests/cpu/FusedReference.h"

namespace faiss_bits::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
using Ids = std::vector<int64_t>;
using Keys = std::vector<float>;

double distance(FusedMetric metric, Keys q, Keys x, float p = 3) {
    EXPECT_EQ(q.size(), x.size());
    return referenceDistance(metric, p, q.data(), x.data(), int(q.size()));
}

TEST(FusedReference, Distances) {
    const Keys q = {1, -2, 3};
    const Keys x = {4, 2, 3};
    EXPECT_EQ(distance(FusedMetric::L2, q, x), 25);
    EXPECT_EQ(distance(FusedMetric::InnerProduct, q, x), 9);
    EXPECT_DOUBLE_EQ(
            distance(FusedMetric::Cosine, q, x), 9 / std::sqrt(14. * 29.));
    EXPECT_EQ(distance(FusedMetric::L1, q, x), 7);
    EXPECT_EQ(distance(FusedMetric::Linf, q, x), 4);
    EXPECT_EQ(distance(FusedMetric::Lp, q, x, 3), 27 + 64);
    EXPECT_EQ(distance(FusedMetric::Lp, q, x, 1), 7);
    EXPECT_EQ(distance(FusedMetric::Lp, {0, 5}, {9, 1}, 0.5f), 3 + 2);
    EXPECT_EQ(distance(FusedMetric::Cosine, {3, 4}, {6, 8}), 1);
    EXPECT_EQ(distance(FusedMetric::Cosine, {3, 4}, {-3, -4}), -1);
    EXPECT_EQ(distance(FusedMetric::Cosine, {3, 4}, {0, 0}), 0);
    EXPECT_EQ(distance(FusedMetric::Cosine, {0, 0}, {0, 0}), 0);
}

TEST(FusedReference, NotNumbers) {
    for (FusedMetric metric : kFusedMetrics) {
        SCOPED_TRACE(metricName(metric));
        EXPECT_TRUE(std::isnan(distance(metric, {1, 2, 3}, {1, kNan, 9})));
        EXPECT_TRUE(std::isnan(distance(metric, {kNan, 0, 0}, {0, 0, 0})));
        EXPECT_TRUE(std::isnan(distance(metric, {9, -kNan}, {0, 3})));
    }
    EXPECT_EQ(distance(FusedMetric::L2, {1, 2}, {kInf, 0}), kInf);
    EXPECT_TRUE(std::isnan(distance(FusedMetric::L2, {kInf}, {kInf})));
    EXPECT_EQ(distance(FusedMetric::InnerProduct, {1, 2}, {-kInf, 0}), -kInf);
    EXPECT_TRUE(std::isnan(
            distance(FusedMetric::InnerProduct, {0, 2}, {-kInf, 0})));
    EXPECT_EQ(distance(FusedMetric::L1, {1, 2}, {-kInf, 0}), kInf);
    EXPECT_EQ(distance(FusedMetric::Linf, {1, 2}, {-kInf, 0}), kInf);
    EXPECT_TRUE(
            std::isnan(distance(FusedMetric::Linf, {kInf, 2}, {kInf, kInf})));
    EXPECT_EQ(distance(FusedMetric::Lp, {1, 2}, {-kInf, 0}), kInf);
    EXPECT_TRUE(std::isnan(distance(FusedMetric::Cosine, {1}, {kInf})));
}

Accepted<float> accepted(
        FusedMetric metric,
        const Keys& q,
        const Keys& x,
        bool exact = false) {
    return acceptedKeys(metric, 3.f, q.data(), x.data(), int(q.size()), exact);
}

TEST(FusedReference, AcceptedKeysHoldTheDistanceAndLittleElse) {
    const Keys q = {0.1f, -0.7f, 0.3f};
    const Keys x = {0.2f, 0.9f, -0.4f};
    for (FusedMetric metric : kFusedMetrics) {
        SCOPED_TRACE(metricName(metric));
        const auto keys = accepted(metric, q, x);
        const double truth = distance(metric, q, x);
        EXPECT_TRUE(keys.has(float(truth)));
        EXPECT_FALSE(keys.nan);
        EXPECT_LT(double(keys.most) - keys.least, 3e-5);
        EXPECT_FALSE(keys.has(float(truth + 3e-5)));
        EXPECT_FALSE(keys.has(float(truth - 3e-5)));
    }
    // One key where nothing is rounded, but never for roots and powers.
    for (FusedMetric metric : kFusedMetrics) {
        SCOPED_TRACE(metricName(metric));
        const auto keys = accepted(metric, {1, 2, 3}, {3, 5, 2}, true);
        const bool rounds =
                metric == FusedMetric::Cosine || metric == FusedMetric::Lp;
        EXPECT_EQ(keys.least == keys.most, !rounds);
    }
    EXPECT_EQ(accepted(FusedMetric::L2, {1}, {1}).least, 0) << "never below";
    EXPECT_EQ(accepted(FusedMetric::Cosine, {1}, {0}).least, 0);
    EXPECT_EQ(accepted(FusedMetric::Cosine, {1}, {0}).most, 0);
}

TEST(FusedReference, AcceptedKeysOfWhatIsNotFinite) {
    for (FusedMetric metric : kFusedMetrics) {
        SCOPED_TRACE(metricName(metric));
        const auto keys = accepted(metric, {1, 2}, {kNan, 2});
        EXPECT_TRUE(keys.has(kNan));
        EXPECT_FALSE(keys.has(kInf) || keys.has(-kInf) || keys.has(1));
    }
    auto keys = accepted(FusedMetric::L2, {1, 2}, {kInf, 2});
    EXPECT_TRUE(keys.has(kInf) && keys.has(kNan)) << "inf - inf";
    EXPECT_FALSE(keys.has(kMax));
    keys = accepted(FusedMetric::L1, {1, 2}, {kInf, 2});
    EXPECT_TRUE(keys.has(kInf) && !keys.has(kNan) && !keys.has(kMax));
    keys = accepted(FusedMetric::L1, {kMax, kMax}, {-kMax, -kMax});
    EXPECT_TRUE(keys.has(kInf) && !keys.has(kMax)) << "overflows";
    keys = accepted(FusedMetric::Linf, {kMax}, {0});
    EXPECT_TRUE(keys.has(kMax) && !keys.has(kMax / 2));
    keys = accepted(FusedMetric::L2, {1e30f, 1}, {1e30f, 2});
    EXPECT_TRUE(keys.has(1) && keys.has(kNan)) << "squares overflow";
    keys = accepted(FusedMetric::InnerProduct, {1e30f, 1}, {1e30f, 2});
    EXPECT_TRUE(keys.has(kInf));
}

TEST(FusedReference, Rounding) {
    EXPECT_EQ(roundedDown<float>(1.0), 1.f);
    EXPECT_EQ(roundedUp<float>(1.0), 1.f);
    EXPECT_EQ(roundedDown<float>(1.0 + 1e-12), 1.f);
    EXPECT_EQ(roundedUp<float>(1.0 + 1e-12), std::nextafter(1.f, 2.f));
    EXPECT_EQ(roundedDown<float>(1.0 - 1e-12), std::nextafter(1.f, 0.f));
    EXPECT_EQ(roundedUp<float>(-1.0 + 1e-12), -std::nextafter(1.f, 0.f));
    EXPECT_EQ(roundedUp<float>(1e39), kInf);
    EXPECT_EQ(roundedDown<float>(-1e39), -kInf);
}

Candidates<float> someCandidates() {
    Candidates<float> c;
    c.ids = {2, 3, 5, 7, 9};
    c.times = {1, 1, 1, 2, 1};
    c.keys = {
            {4, 4, false},
            {1, 1, false},
            {1, -1, true},
            {1, 1, false},
            {1, 2, false}};
    c.count = 6;
    return c;
}

TEST(FusedCompare, TopK) {
    const auto c = someCandidates();
    auto check = [&](Keys keys, Ids ids, bool largest = false) {
        return isTopKOf(c, largest, keys.data(), ids.data(), ids.size());
    };
    EXPECT_TRUE(check({}, {}));
    EXPECT_TRUE(check({1}, {3}));
    EXPECT_FALSE(check({1}, {7})) << "higher id of equal keys";
    EXPECT_FALSE(check({1.5f}, {9})) << "not the nearest";
    EXPECT_FALSE(check({1}, {2})) << "not its key";
    EXPECT_FALSE(check({1}, {4})) << "not searched";
    EXPECT_TRUE(check({1, 1, 1}, {3, 7, 7})) << "searched twice";
    EXPECT_FALSE(check({1, 1}, {3, 3})) << "searched once";
    EXPECT_FALSE(check({1, 1, 2}, {3, 7, 9})) << "7 is left out";
    EXPECT_TRUE(check({1, 1, 1, 2}, {3, 7, 7, 9}));
    EXPECT_FALSE(check({1, 1, 2, 1}, {3, 7, 9, 7})) << "order";
    EXPECT_FALSE(check({1, 1, 1, 4}, {3, 7, 7, 2})) << "9 is nearer";
    EXPECT_TRUE(check({1, 1, 1, 2, 4}, {3, 7, 7, 9, 2}));
    EXPECT_TRUE(check({1, 1, 1, 2, 4, kMax}, {3, 7, 7, 9, 2, -1}));
    EXPECT_TRUE(check({1, 1, 1, 2, 4, kMax, kMax}, {3, 7, 7, 9, 2, -1, -1}));
    EXPECT_FALSE(check({1, 1, 1, 2, 4, kNan}, {3, 7, 7, 9, 2, 5}))
            << "NaN is no result";
    EXPECT_FALSE(check({1, 1, 1, 2, 4, kMax}, {3, 7, 7, 9, 2, 5}))
            << "nor at another distance";
    EXPECT_FALSE(check({1, 1, 1, 2, kMax}, {3, 7, 7, 9, -1}))
            << "2 is left out";
    EXPECT_FALSE(check({1, 1, 1, 2, kMax, 4}, {3, 7, 7, 9, -1, 2}))
            << "a place left over before a number";
    EXPECT_FALSE(check({1, 1, 1, 2, 4, kInf}, {3, 7, 7, 9, 2, -1}))
            << "sentinel";
    EXPECT_FALSE(check({1, 1, 1, 2, 4, kNan}, {3, 7, 7, 9, 2, -1}))
            << "sentinel";
    EXPECT_FALSE(check({kMax}, {-1})) << "nothing at all";
    EXPECT_TRUE(check({4, 2, 1}, {2, 9, 3}, true));
    EXPECT_TRUE(check({4, 1, 1}, {2, 3, 7}, true)) << "9 may be at 1";
    EXPECT_FALSE(check({4, 1}, {2, 7}, true)) << "higher id of equal keys";
    EXPECT_TRUE(check({4, 2, 1, 1, 1, -kMax}, {2, 9, 3, 7, 7, -1}, true));
    EXPECT_FALSE(check({4, 2, 1, 1, 1, kMax}, {2, 9, 3, 7, 7, -1}, true))
            << "sentinel";
}

/// A key that may be a number or NaN may be there or not.
TEST(FusedCompare, TopKOfWhatMayBeNan) {
    Candidates<float> c;
    c.ids = {0, 1};
    c.times = {1, 1};
    c.keys = {{1, 2, true}, {5, 5, false}};
    c.count = 2;
    auto check = [&](Keys keys, Ids ids) {
        return isTopKOf(c, false, keys.data(), ids.data(), ids.size());
    };
    EXPECT_TRUE(check({2, 5}, {0, 1}));
    EXPECT_TRUE(check({5, kMax}, {1, -1}));
    EXPECT_TRUE(check({5}, {1}));
    EXPECT_FALSE(check({2, kMax}, {0, -1})) << "1 is a number";
    EXPECT_FALSE(check({kMax}, {-1})) << "1 is a number";
}

TEST(FusedCompare, Range) {
    const auto c = someCandidates();
    auto check = [&](float radius, Keys keys, Ids ids, bool largest = false) {
        return isRangeOf(
                c, largest, radius, keys.data(), ids.data(), ids.size());
    };
    EXPECT_TRUE(check(1, {}, {})) << "not equal to the radius";
    EXPECT_TRUE(check(1.5f, {1, 1, 1}, {3, 7, 7})) << "9 may be at 2";
    EXPECT_TRUE(check(1.5f, {1, 1, 1, 1}, {3, 7, 7, 9}));
    EXPECT_FALSE(check(1.5f, {1, 1}, {3, 7})) << "7 twice";
    EXPECT_FALSE(check(1.5f, {1, 1, 1}, {7, 7, 3})) << "ids ascend";
    EXPECT_FALSE(check(1.5f, {1, 1, 1, 2}, {3, 7, 7, 9})) << "too far";
    EXPECT_TRUE(check(kInf, {4, 1, 1, 1, 1}, {2, 3, 7, 7, 9}));
    EXPECT_FALSE(check(kInf, {4, 1, kNan, 1, 1, 1}, {2, 3, 5, 7, 7, 9}))
            << "NaN is nowhere within";
    EXPECT_TRUE(check(1, {4}, {2}, true));
    EXPECT_TRUE(check(1, {4, 2}, {2, 9}, true));
    EXPECT_FALSE(check(1, {2}, {9}, true));
}

/// What is promised of the contents, and that those called exact are.
TEST(FusedCases, Contents) {
    for (Contents contents : kAllContents) {
        SCOPED_TRACE(nameOf(contents));
        FusedCase c;
        c.contents = contents;
        c.n = 2000;
        c.d = 129;
        const FusedData<float> data(c);
        int64_t nans = 0;
        int64_t infinities = 0;
        for (float value : data.vectors().values) {
            nans += std::isnan(value);
            infinities += std::isinf(value);
        }
        EXPECT_EQ(
                nans > 0,
                contents == Contents::SomeNan ||
                        contents == Contents::FewNumbers ||
                        contents == Contents::Mixed);
        EXPECT_EQ(
                infinities > 0,
                contents == Contents::Infinite || contents == Contents::Mixed);
        for (int64_t i = 0; isExact(contents) && i < c.n; ++i) {
            const PairSums<float> sums(
                    data.queries().row(0), data.vectors().row(i), c.d);
            if (std::isfinite(sums.squares)) {
                const double all = sums.queryNorm + sums.vectorNorm +
                        2 * sums.sizeOfProduct;
                ASSERT_EQ(all, std::floor(all));
                ASSERT_LT(all, double(1 << 24));
            }
        }
    }
}

TEST(FusedCases, RowsAreAsAsked) {
    FusedCase c;
    c.contents = Contents::Uniform;
    c.queryGap = 3;
    c.vectorGap = 5;
    c.pickQueries = c.pickVectors = c.repeatVectors = true;
    const FusedData<double> data(c);
    for (const auto* rows : {&data.queries(), &data.vectors()}) {
        EXPECT_FALSE(std::is_sorted(rows->ids.begin(), rows->ids.end()));
        const std::set<idx_t> distinct(rows->ids.begin(), rows->ids.end());
        EXPECT_LT(distinct.size(), rows->ids.size());
        for (idx_t i = 0; i < rows->count; ++i) {
            EXPECT_FALSE(std::isnan(rows->row(i)[c.d - 1]));
        }
        EXPECT_EQ(rows->values.size(), 2 * rows->count * rows->stride + c.d);
    }
    EXPECT_EQ(data.candidates(0).count, c.n);
}

} // namespace
} // namespace faiss_bits::test
