/// The closed form that the tests of large matrices rest on, against all keys
/// of a row. Runs on the host.

#include <gtest/gtest.h>

#include "tests/common/KnownKeys.cuh"

namespace faiss_bits::test {
namespace {

TEST(KnownKeys, BestAreThoseOfTheWholeRow) {
    const int64_t cols = (1 << 24) + 3;
    for (int64_t row : {0, 1, 129}) {
        std::vector<float> keys(cols);
        for (int64_t c = 0; c < cols; ++c) {
            keys[c] = KnownKeys::key(row, c, KnownKeys::shift(cols));
        }
        const auto best = KnownKeys::best(row, cols, 2048);
        ASSERT_GE(best.size(), 64u) << "row " << row;
        EXPECT_LT(best.back().key, 0) << "only special columns are known";
        EXPECT_EQ(
                best,
                topKOfRow(keys.data(), cols, nullptr, 0, best.size(), false));
    }
}

TEST(KnownKeys, EveryRowHasSome) {
    // The shapes of TestSelectLarge.cu, with the k that they ask for.
    for (int64_t row = 0; row < 1040; ++row) {
        ASSERT_EQ(KnownKeys::best(row, 1 << 22, 64).size(), 64u) << row;
    }
    for (int64_t row = 0; row < 130; ++row) {
        ASSERT_EQ(KnownKeys::best(row, 1 << 24, 10).size(), 10u) << row;
    }
    for (int64_t row = 0; row < 17; ++row) {
        const int64_t cols = (int64_t(1) << 28) + 3;
        ASSERT_EQ(KnownKeys::best(row, cols, 200).size(), 200u) << row;
    }
    EXPECT_EQ(KnownKeys::best(0, (int64_t(1) << 30) + 7, 900).size(), 900u);
}

TEST(KnownKeys, KeysAreExactInHalf) {
    for (int64_t c = 0; c < 100000; ++c) {
        const float key = KnownKeys::key(3, c, 5);
        ASSERT_EQ(__half2float(__float2half_rn(key)), key);
    }
    for (const Ranked& best :
         KnownKeys::best(3, int64_t(1) << 32, KnownKeys::kSpecial)) {
        ASSERT_EQ(
                double(__half2float(__float2half_rn(float(best.key)))),
                best.key);
    }
}

} // namespace
} // namespace faiss_bits::test
