/// The comparison by which the benches of several devices find wrong answers.

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "benchs/many/Answers.h"

namespace faiss_bits::bench {
namespace {

using faiss::RangeSearchResult;
using idx_t = int64_t; // FAISS has it inside Index before 1.7.4

TEST(ManyAnswers, QueriesCountOnce) {
    const Answers want{{1, 2, 3, 4, 5, 6}, {10, 20, 30, 40, 50, 60}};
    EXPECT_EQ(wrongQueries(want, want, 2), 0);
    Answers got = want;
    got.labels[2] = 31;
    EXPECT_EQ(wrongQueries(got, want, 2), 1);
    got.distances[3] = 4.5f; // of the same query
    EXPECT_EQ(wrongQueries(got, want, 2), 1);
    got.distances[5] = 7;
    EXPECT_EQ(wrongQueries(got, want, 2), 2);
}

TEST(ManyAnswers, BitsCount) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const Answers want{{0.0f, nan}, {1, 2}};
    Answers got = want;
    EXPECT_EQ(wrongQueries(got, want, 1), 0);
    got.distances[0] = -0.0f;
    EXPECT_EQ(wrongQueries(got, want, 1), 1);
}

TEST(ManyAnswers, OtherSizesAreAllWrong) {
    const Answers want{{1, 2, 3}, {1, 2, 3}};
    EXPECT_EQ(wrongQueries(Answers(), want, 1), 3);
    EXPECT_EQ(wrongQueries({{1, 2}, {1, 2, 3}}, want, 1), 3);
}

/// Queries with 2, 0 and 1 results.
void fill(RangeSearchResult& result) {
    const size_t lims[] = {0, 2, 2, 3};
    std::copy(lims, lims + 4, result.lims);
    result.labels = new idx_t[3]{7, 9, 8};
    result.distances = new float[3]{1, 2, 3};
}

TEST(ManyAnswers, Ranges) {
    RangeSearchResult want(3);
    fill(want);
    RangeSearchResult got(3);
    fill(got);
    EXPECT_EQ(wrongQueries(got, want), 0);
    got.labels[1] = 10;
    EXPECT_EQ(wrongQueries(got, want), 1);
    got.distances[2] = 4;
    EXPECT_EQ(wrongQueries(got, want), 2);
}

TEST(ManyAnswers, RangesOfOtherLengths) {
    RangeSearchResult want(3);
    fill(want);
    RangeSearchResult got(3);
    fill(got);
    got.lims[2] = 3; // the last result is the second query's
    EXPECT_EQ(wrongQueries(got, want), 2);
    EXPECT_EQ(wrongQueries(RangeSearchResult(2), want), 3);
}

} // namespace
} // namespace faiss_bits::bench
