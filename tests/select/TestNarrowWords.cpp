/// Where the keys of a row lie in words of two, for every length and either
/// half of a word that the row may begin in.

#include <vector>

#include <gtest/gtest.h>

#include "kernels/select/short_rows/NarrowWords.h"

namespace faiss_bits::test {
namespace {

TEST(NarrowWords, HaveEveryColumnOnce) {
    for (uint32_t cols = 1; cols <= 70; ++cols) {
        for (uint32_t isOdd : {0, 1}) {
            const NarrowWords words{cols, isOdd};
            std::vector<int> times(cols);
            int columns = 0;
            const auto see = [&](int column) {
                ASSERT_GE(column, 0) << cols << " " << isOdd;
                ASSERT_LT(column, int(cols)) << cols << " " << isOdd;
                ++times[column];
                ++columns;
            };
            ASSERT_LE(words.edges(), 1);
            // The first word: the row's last key and its first one.
            if (words.edges() == 1 && words.isCut()) {
                see(int(cols) - 1);
            }
            if (words.edges() == 1 && isOdd) {
                see(0);
            }
            for (int word = words.edges(); word < words.count(); ++word) {
                see(words.columnOf(word));
                see(words.columnOf(word) + 1);
            }
            EXPECT_EQ(columns, int(cols)) << cols << " " << isOdd;
            for (int c = 0; c < int(cols); ++c) {
                EXPECT_EQ(times[c], 1) << cols << " " << isOdd << " " << c;
            }
        }
    }
}

/// NaN with the columns of words behind the last come behind all of the row:
/// one of them may have the row's last column, which is a NaN as well then, and
/// equal to it.
TEST(NarrowWords, WhatFollowsIsNotBeforeTheLastColumn) {
    for (uint32_t cols = 1; cols <= 70; ++cols) {
        for (uint32_t isOdd : {0, 1}) {
            const NarrowWords words{cols, isOdd};
            for (int more = 0; more < 40; ++more) {
                EXPECT_GE(words.columnOf(words.count() + more), int(cols) - 1)
                        << cols << " " << isOdd << " " << more;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
