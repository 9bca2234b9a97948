/// The oracle and the comparison against tables written by hand: what judges
/// the kernels has to be right, and has to be able to fail.

#include <limits>

#include <gtest/gtest.h>

#include "tests/common/Cases.h"
#include "tests/common/Compare.h"
#include "tests/common/HostTypes.h"
#include "tests/common/Oracle.h"

namespace faiss_bits::test {
namespace {

const float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kMax = std::numeric_limits<float>::max();

std::vector<int64_t> idsOf(const std::vector<Ranked>& ranked) {
    std::vector<int64_t> ids;
    for (const Ranked& entry : ranked) {
        ids.push_back(entry.id);
    }
    return ids;
}

using Ids = std::vector<int64_t>;

TEST(Oracle, RanksByHand) {
    struct Row {
        const char* what;
        std::vector<float> keys;
        int k;
        Ids smallest;
        Ids largest;
    };
    const std::vector<Row> table = {
            {"distinct", {3, 1, 2}, 2, {1, 2}, {0, 2}},
            {"k beyond the row", {3, 1, 2}, 9, {1, 2, 0}, {0, 2, 1}},
            {"ties: lower id", {5, 4, 5, 4, 5}, 4, {1, 3, 0, 2}, {0, 2, 4, 1}},
            {"all equal", {7, 7, 7}, 2, {0, 1}, {0, 1}},
            {"zeros are equal", {0.f, -0.f, 0.f}, 3, {0, 1, 2}, {0, 1, 2}},
            {"nan last", {kNan, 2, kNan, 1}, 4, {3, 1, 0, 2}, {1, 3, 0, 2}},
            {"nan behind infinity",
             {kNan, kInf, -kInf},
             3,
             {2, 1, 0},
             {1, 2, 0}},
            {"all nan", {kNan, kNan}, 2, {0, 1}, {0, 1}},
            {"empty", {}, 3, {}, {}},
    };
    for (const Row& row : table) {
        SCOPED_TRACE(row.what);
        const int64_t cols = row.keys.size();
        EXPECT_EQ(
                idsOf(topKOfRow(
                        row.keys.data(), cols, nullptr, 0, row.k, false)),
                row.smallest);
        EXPECT_EQ(
                idsOf(topKOfRow(
                        row.keys.data(), cols, nullptr, 0, row.k, true)),
                row.largest);
    }
}

TEST(Oracle, GivenIdsDecideNoTies) {
    const std::vector<float> keys = {1, 1, 0, 1};
    const Ids ids = {int64_t(9) << 40, 7, 100, 8};
    EXPECT_EQ(
            idsOf(topKOfRow(keys.data(), 4, ids.data(), 0, 3, false)),
            (Ids{100, int64_t(9) << 40, 7}));
    EXPECT_EQ(
            idsOf(topKOfRow(
                    keys.data(), 4, nullptr, int64_t(1) << 33, 2, false)),
            (Ids{(int64_t(1) << 33) + 2, int64_t(1) << 33}));
}

TEST(Oracle, DistancesByHand) {
    const float query[] = {1, 2};
    const float vectors[] = {1, 2, 4, 6, -1, 0};
    EXPECT_EQ(
            distancesToAll(query, vectors, 3, 2, false),
            (std::vector<double>{0, 25, 8}));
    EXPECT_EQ(
            distancesToAll(query, vectors, 3, 2, true),
            (std::vector<double>{5, 16, -1}));
}

TEST(Oracle, ErrorBoundHoldsAndIsTight) {
    // Plain fp32 sums stay within the bound; the bound is not so wide that
    // it would hide an error of one part in 10^4.
    std::mt19937 random(1);
    const int d = 100;
    const std::vector<float> q =
            makeRow(Values::Random, d, DataType::Float32, random);
    const std::vector<float> x =
            makeRow(Values::Random, d, DataType::Float32, random);
    float product = 0;
    float xNorm = 0;
    float qNorm = 0;
    for (int i = 0; i < d; ++i) {
        product += q[i] * x[i];
        xNorm += x[i] * x[i];
        qNorm += q[i] * q[i];
    }
    const double trueProduct = innerProduct(q.data(), x.data(), d);
    const double trueL2 = squaredL2(q.data(), x.data(), d);
    const double productError = fp32DistanceError(q.data(), x.data(), d, true);
    const double l2Error = fp32DistanceError(q.data(), x.data(), d, false);
    EXPECT_LE(std::abs(product - trueProduct), productError);
    EXPECT_LE(std::abs(xNorm - 2 * product + qNorm - trueL2), l2Error);
    EXPECT_GT(l2Error, 0);
    EXPECT_LT(l2Error, 1e-4 * (xNorm + qNorm) * 2);
}

// Each wrong answer below differs from the right one in one point only.
TEST(Compare, SelectionRejectsEachWrongPoint) {
    const std::vector<float> keys = {2, 1, 2, -0.f};
    RowOfKeys row{keys.data(), 4, nullptr, 0};
    const auto expected = topKOfRow(keys.data(), 4, nullptr, 0, 6, false);
    const std::vector<float> goodKeys = {-0.f, 1, 2, 2, kMax, kMax};
    const Ids goodIds = {3, 1, 0, 2, -1, -1};
    auto check = [&](std::vector<float> outKeys, Ids outIds, bool zero = true) {
        return isTopKOfRow(
                row, expected, outKeys.data(), outIds.data(), 6, kMax, zero);
    };
    EXPECT_TRUE(check(goodKeys, goodIds));
    EXPECT_FALSE(check(goodKeys, {3, 1, 2, 0, -1, -1})) << "tie order";
    EXPECT_FALSE(check(goodKeys, {3, 1, 0, 0, -1, -1})) << "repeated id";
    EXPECT_FALSE(check(goodKeys, {3, 1, 0, 4, -1, -1})) << "id out of range";
    EXPECT_FALSE(check(goodKeys, {3, 1, 0, 2, 5, -1})) << "id of a sentinel";
    EXPECT_FALSE(check({-0.f, 1, 2, 2, kInf, kMax}, goodIds)) << "sentinel";
    EXPECT_FALSE(check({-0.f, 1.5f, 2, 2, kMax, kMax}, goodIds)) << "key";
    EXPECT_FALSE(check({0.f, 1, 2, 2, kMax, kMax}, goodIds)) << "zero's sign";
    EXPECT_TRUE(check({0.f, 1, 2, 2, kMax, kMax}, goodIds, false));
}

TEST(Compare, UnsortedResultsAreSortedFirst) {
    const std::vector<float> keys = {2, 1, kNan, -0.f, 2};
    RowOfKeys row{keys.data(), 5, nullptr, 0};
    for (bool largest : {false, true}) {
        const float sentinel = largest ? -kMax : kMax;
        const auto expected = topKOfRow(keys.data(), 5, nullptr, 0, 7, largest);
        auto check = [&](std::vector<float> outKeys, Ids outIds) {
            sortResult(outKeys.data(), outIds.data(), outIds.size(), largest);
            return isTopKOfRow(
                    row,
                    expected,
                    outKeys.data(),
                    outIds.data(),
                    outIds.size(),
                    sentinel);
        };
        const float end = sentinel;
        EXPECT_TRUE(check(
                {2, end, 2, kNan, 1, end, -0.f}, {4, -1, 0, 2, 1, -1, 3}));
        EXPECT_FALSE(
                check({2, end, 2, kNan, 1, end, -0.f}, {4, -1, 4, 2, 1, -1, 3}))
                << "repeated id";
        EXPECT_FALSE(
                check({2, end, 1, kNan, 2, end, -0.f}, {4, -1, 0, 2, 1, -1, 3}))
                << "keys of other ids";
        EXPECT_EQ(bool(check({2, 2}, {4, 0})), largest);
        EXPECT_EQ(bool(check({1, -0.f}, {1, 3})), !largest);
    }
}

TEST(Compare, SelectionWithGivenIds) {
    const std::vector<float> keys = {1, kNan, 1};
    const Ids ids = {50, 40, 30};
    RowOfKeys row{keys.data(), 3, ids.data(), 0};
    const auto expected = topKOfRow(keys.data(), 3, ids.data(), 0, 3, true);
    const std::vector<float> outKeys = {1, 1, kNan};
    auto check = [&](const Ids& outIds) {
        return isTopKOfRow(
                row, expected, outKeys.data(), outIds.data(), 3, -kMax);
    };
    EXPECT_TRUE(check({50, 30, 40}));
    EXPECT_FALSE(check({30, 50, 40})) << "the lower id, not the lower column";
    EXPECT_FALSE(check({50, 30, 0})) << "column instead of id";
}

TEST(Compare, NeighboursWithinRounding) {
    const std::vector<double> truth = {1.0, 1.0 + 1e-7, 4.0, 9.0};
    NeighbourCheck check{&truth, [](int64_t) { return 1e-6; }, false};
    auto test = [&](std::vector<float> distances, Ids ids) {
        return isNearest(check, distances.data(), ids.data(), ids.size());
    };
    EXPECT_TRUE(test({1, 1}, {0, 1}));
    EXPECT_TRUE(test({1}, {1})) << "indistinguishable within the rounding";
    EXPECT_TRUE(test({1, 1, 4, 9, kMax}, {0, 1, 2, 3, -1}));
    EXPECT_FALSE(test({1, 1}, {1, 0})) << "equal distances, higher id first";
    EXPECT_FALSE(test({1, 4}, {0, 2})) << "a nearer vector is left out";
    EXPECT_FALSE(test({1, 1.01f}, {0, 1})) << "distance is off";
    EXPECT_FALSE(test({4, 1, 1}, {2, 0, 1})) << "order";
    EXPECT_FALSE(test({1, 1}, {0, 0})) << "repeated id";
    EXPECT_FALSE(test({1, 1, 4, 9, -kMax}, {0, 1, 2, 3, -1})) << "sentinel";
    EXPECT_FALSE(test({1, 1, 4, 9, kMax}, {0, 1, 2, 3, 0})) << "sentinel id";
    EXPECT_FALSE(test({1, kNan}, {0, 1})) << "NaN for a number";
}

TEST(Compare, NeighboursThatAreNotNumbers) {
    const std::vector<double> truth = {kNan, 2.0, kInf, 1.0};
    NeighbourCheck check{&truth, [](int64_t) { return 1e-6; }, false};
    auto test = [&](std::vector<float> distances, Ids ids) {
        return isNearest(check, distances.data(), ids.data(), ids.size());
    };
    EXPECT_TRUE(test({1, 2}, {3, 1}));
    EXPECT_TRUE(test({1, 2, kInf, kNan}, {3, 1, 2, 0}));
    EXPECT_TRUE(test({1, 2, kNan, kNan}, {3, 1, 0, 2}))
            << "inf - inf of an expanded distance";
    EXPECT_FALSE(test({1, kInf}, {3, 2})) << "a number is left out";
    EXPECT_FALSE(test({1, kNan}, {3, 0})) << "NaN beats a number";
    EXPECT_FALSE(test({kNan, 1, 2, kInf}, {0, 3, 1, 2})) << "NaN first";
}

TEST(Compare, NeighboursWhereNanIsNeverReturned) {
    const std::vector<double> truth = {kNan, 2.0, kInf, 1.0};
    NeighbourCheck check{&truth, [](int64_t) { return 1e-6; }, false, false};
    auto test = [&](std::vector<float> distances, Ids ids) {
        return isNearest(check, distances.data(), ids.data(), ids.size());
    };
    EXPECT_TRUE(test({1, 2}, {3, 1}));
    EXPECT_TRUE(test({1, 2, kInf, kMax}, {3, 1, 2, -1}));
    EXPECT_TRUE(test({1, 2, kMax, kMax, kMax}, {3, 1, -1, -1, -1}))
            << "inf - inf of an expanded distance";
    EXPECT_FALSE(test({1, 2, kInf, kNan}, {3, 1, 2, 0})) << "NaN";
    EXPECT_FALSE(test({1, 2, kNan, kMax}, {3, 1, 2, -1})) << "NaN";
    EXPECT_FALSE(test({1, 2, kMax}, {3, 1, 0})) << "id of an empty place";
    EXPECT_FALSE(test({1, 2, kInf}, {3, 1, -1})) << "empty place";
    EXPECT_FALSE(test({1, kMax}, {3, -1})) << "a number is left out";
    EXPECT_FALSE(test({1, kMax, 2}, {3, -1, 1})) << "an empty place before it";
    // The largest inner product is infinite, so it must be there.
    check.largest = true;
    EXPECT_TRUE(test({kInf, 2, 1, -kMax}, {2, 1, 3, -1}));
    EXPECT_FALSE(test({2, 1, -kMax, -kMax}, {1, 3, -1, -1}));
}

TEST(Cases, ValuesAreWhatTheirNamesSay) {
    std::mt19937 random(7);
    for (Values values : kAllValues) {
        for (DataType type :
             {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
            SCOPED_TRACE(nameOf(values) + " " + nameOf(type));
            const auto row = makeRow(values, 5000, type, random);
            ASSERT_EQ(row.size(), 5000u);
            if (values == Values::Denormals ||
                values == Values::SameLeadingBits) {
                const float least = *std::min_element(row.begin(), row.end());
                EXPECT_EQ(roundTo(type, least), least) << "not exact";
                EXPECT_LT(least, *std::max_element(row.begin(), row.end()));
            }
            int64_t nans = 0;
            int64_t infinities = 0;
            for (float key : row) {
                nans += std::isnan(key);
                infinities += std::isinf(key);
            }
            EXPECT_EQ(
                    nans > 0,
                    values == Values::SomeNan || values == Values::AllNan ||
                            values == Values::OneFinite);
            EXPECT_EQ(
                    infinities > 0,
                    values == Values::HalfInfinite ||
                            values == Values::BothInfinities);
            if (values == Values::Ascending) {
                EXPECT_TRUE(std::is_sorted(row.begin(), row.end()));
                EXPECT_LT(row.front(), row.back());
            }
            if (values == Values::Descending) {
                EXPECT_TRUE(std::is_sorted(row.rbegin(), row.rend()));
                EXPECT_GT(row.front(), row.back());
            }
            if (values == Values::BestTogether) {
                const auto isZero = [](float key) { return key == 0; };
                const int64_t zeros =
                        std::count_if(row.begin(), row.end(), isZero);
                EXPECT_EQ(zeros, 5000 - 1250);
                EXPECT_EQ(*std::min_element(row.begin(), row.end()), -625.f);
                EXPECT_EQ(*std::max_element(row.begin(), row.end()), 625.f);
            }
        }
    }
    const Ids ids = makeIds(1000, false, random);
    EXPECT_EQ(
            std::unordered_set<int64_t>(ids.begin(), ids.end()).size(), 1000u);
    EXPECT_GT(*std::max_element(ids.begin(), ids.end()), int64_t(1) << 32);
}

} // namespace
} // namespace faiss_bits::test
