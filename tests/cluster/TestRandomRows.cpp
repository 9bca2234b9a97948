/// Rows that are drawn are FAISS's.

#include <faiss/impl/FaissException.h>
#include <faiss/utils/random.h>
#include <gtest/gtest.h>

#include "faiss_bits/cluster/RandomRows.h"

namespace faiss_bits::test {
namespace {

using faiss_bits::detail::firstOfPermutation;
using faiss_bits::detail::rowsWithRepeats;

TEST(RandomRows, AreTheFirstOfFaissPermutation) {
    for (int n : {1, 2, 3, 100, 1000, 100000}) {
        for (int64_t seed :
             {int64_t(0),
              int64_t(1235),
              int64_t(-7),
              int64_t(1234) + 3 * int64_t(15486557)}) {
            std::vector<int> all(n);
            faiss::rand_perm(all.data(), n, seed);
            // Both sides of where all numbers are held.
            for (int count : {0, 1, n / 16 - 1, n / 16, n / 16 + 1, n - 1, n}) {
                if (count < 0 || count > n) {
                    continue;
                }
                const auto first = firstOfPermutation(n, count, seed);
                const std::vector<idx_t> expected(
                        all.begin(), all.begin() + count);
                ASSERT_EQ(first, expected)
                        << "n=" << n << " count=" << count << " seed=" << seed;
            }
        }
    }
}

TEST(RandomRows, OfManyVectorsTakeNoTime) {
    const auto first = firstOfPermutation(INT32_MAX, 1000, 1);
    EXPECT_EQ(first.size(), 1000u);
    for (idx_t row : first) {
        EXPECT_GE(row, 0);
        EXPECT_LT(row, INT32_MAX);
    }
}

TEST(RandomRows, RefuseWhatFaissCannotPermute) {
    EXPECT_THROW(
            firstOfPermutation(idx_t(1) << 31, 10, 1), faiss::FaissException);
    EXPECT_THROW(firstOfPermutation(10, 11, 1), faiss::FaissException);
    EXPECT_THROW(firstOfPermutation(10, -1, 1), faiss::FaissException);
    EXPECT_THROW(rowsWithRepeats(0, 1, 1), faiss::FaissException);
}

TEST(RandomRows, WithRepeatsFollowTheGenerator) {
    // SplitMix64 with seed 1234567, as its authors' example has it.
    const uint64_t numbers[] = {
            6457827717110365317u, 3203168211198807973u, 9817491932198370423u};
    const auto rows = rowsWithRepeats(1000, 3, 1234567);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(rows[i], idx_t((numbers[i] & INT64_MAX) % 1000));
    }
}

} // namespace
} // namespace faiss_bits::test
