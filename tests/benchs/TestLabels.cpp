/// The comparison by which benches find that an index is wrong.

#include <gtest/gtest.h>

#include "benchs/common/Labels.h"

namespace faiss_bits::bench {
namespace {

TEST(BenchLabels, OrderOfAQueryDoesNotCount) {
    EXPECT_EQ(shareInBoth({1, 2, 3, 4, 5, 6}, {3, 1, 2, 6, 5, 4}, 3), 1.0);
}

TEST(BenchLabels, LabelsOfOtherQueriesDo) {
    EXPECT_EQ(shareInBoth({1, 2, 3, 4}, {3, 4, 1, 2}, 2), 0.0);
    EXPECT_EQ(shareInBoth({1, 2, 3, 4}, {1, 9, 4, 3}, 2), 0.75);
}

TEST(BenchLabels, TheSameLabelTwiceCountsOnce) {
    EXPECT_EQ(shareInBoth({7, 7}, {7, 8}, 2), 0.5);
}

} // namespace
} // namespace faiss_bits::bench
