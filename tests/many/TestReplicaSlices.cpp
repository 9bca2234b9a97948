/// Slices of whole tiles, and pieces of results: arithmetic, and no device.

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "faiss_bits/many/ReplicaSlices.h"
#include "faiss_bits/many/ShardMap.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::groupSlices;
using gpu::detail::inSteps;
using gpu::detail::lateRowsOf;
using gpu::detail::pieceBegin;
using gpu::detail::tileSlices;

constexpr idx_t kTile = 256;

/// When the last of groups with one part each has ended, in rows, as a float64
/// model of its own has it.
double endOfLast(
        const std::vector<idx_t>& sizes,
        idx_t late,
        const std::vector<double>& speeds) {
    double last = 0;
    for (size_t g = 0; g < sizes.size(); ++g) {
        const double tiles = std::ceil(double(sizes[g]) / double(kTile));
        const double speed = speeds.empty() ? 1 : speeds[g];
        last = std::max(
                last, (g == 0 ? 0 : double(late)) + tiles * kTile / speed);
    }
    return last;
}

std::vector<idx_t> sizesOf(const std::vector<idx_t>& begins) {
    std::vector<idx_t> sizes;
    for (size_t i = 1; i < begins.size(); ++i) {
        sizes.push_back(begins[i] - begins[i - 1]);
    }
    return sizes;
}

TEST(ReplicaSlices, InSteps) {
    const auto expect = [](const std::vector<idx_t>& begins,
                           const std::vector<idx_t>& want) {
        EXPECT_EQ(inSteps(begins, 64), want);
    };
    expect({0, 10240}, {0, 10240});
    expect({0, 10240, 20480, 30720, 40960}, {0, 10240, 20480, 30720, 40960});
    expect({0, 10700, 20511, 30790, 40960}, {0, 10688, 20480, 30784, 40960});
    expect({0, 31, 64}, {0, 0, 64});
    expect({0, 33, 64}, {0, 64, 64});
    expect({0, 0, 0}, {0, 0, 0});
    // Rounded to more rows than there are.
    expect({0, 0, 40}, {0, 0, 40});
    for (idx_t rows : {1, 63, 64, 1000, 40960, 40961}) {
        for (idx_t first : {rows / 4, rows / 3, rows / 2, rows}) {
            const std::vector<idx_t> begins = {
                    0, first, first + (rows - first) / 2, rows};
            const auto got = inSteps(begins, 64);
            ASSERT_EQ(got.size(), begins.size());
            EXPECT_EQ(got.front(), 0);
            EXPECT_EQ(got.back(), rows);
            for (size_t g = 1; g < got.size(); ++g) {
                EXPECT_LE(got[g - 1], got[g]);
                EXPECT_LE(std::abs(got[g] - begins[g]), 32);
                EXPECT_TRUE(
                        g + 1 == got.size() || got[g] == 0 ||
                        (got[g + 1] - got[g]) % 64 == 0);
            }
        }
    }
}

TEST(ReplicaSlices, OfWholeTiles) {
    for (const idx_t rows : {0, 1, 255, 256, 257, 1001, 8192, 20500, 40960}) {
        for (const std::vector<double>& speeds :
             std::vector<std::vector<double>>{
                     {},
                     {1, 1, 1, 1},
                     {0.97, 1.02, 1, 1.01},
                     {0.25, 0.25, 0.25, 3.25},
                     {3.97, 0.01, 0.01, 0.01}}) {
            for (const idx_t late : {0, 40, 700}) {
                const auto got = tileSlices(
                        rows,
                        {1, 1, 1, 1},
                        {0, late, late, late},
                        speeds,
                        kTile);
                ASSERT_EQ(got.size(), 5u);
                ASSERT_EQ(got.front(), 0);
                ASSERT_EQ(got.back(), rows);
                const auto sizes = sizesOf(got);
                ASSERT_GE(sizes[0], 0);
                for (int group = 1; group < 4; ++group) {
                    ASSERT_GE(sizes[group], 0);
                    ASSERT_EQ(sizes[group] % kTile, 0)
                            << rows << " group " << group;
                }
            }
        }
    }
    const std::vector<idx_t> even = {0, 10240, 20480, 30720, 40960};
    // The first device gains nothing for the others by one of their tiles.
    for (const idx_t late : {0, 140, 317}) {
        EXPECT_EQ(
                tileSlices(
                        40960, {1, 1, 1, 1}, {0, late, late, late}, {}, kTile),
                even);
    }
    EXPECT_EQ(
            tileSlices(
                    40960,
                    {1, 1, 1, 1},
                    {},
                    {1.006, 1.002, 0.994, 0.998},
                    kTile),
            even);
    EXPECT_EQ(
            tileSlices(
                    40960, {1, 1, 1, 1}, {}, {1.01, 1.02, 0.96, 1.01}, kTile),
            (std::vector<idx_t>{0, 10496, 20992, 30720, 40960}));
    EXPECT_EQ(
            tileSlices(20480, {1, 1}, {0, 600}, {}, kTile),
            (std::vector<idx_t>{0, 10496, 20480}));
    EXPECT_EQ(
            tileSlices(30720, {2, 1}, {}, {}, kTile),
            (std::vector<idx_t>{0, 20480, 30720}));
}

/// Of two and three groups: nothing that a search of all slices finds ends more
/// than a quarter of a tile earlier.
TEST(ReplicaSlices, EndAsEarlyAsTheyCan) {
    constexpr idx_t kTiles = 40;
    for (const double second : {0.5, 0.9, 0.97, 0.99, 1.0, 1.02, 1.4}) {
        for (const double third : {0.6, 0.98, 1.0, 1.03}) {
            for (const idx_t late : {0, 100, 300}) {
                for (const idx_t more : {0, 1, 200}) {
                    const idx_t rows = kTiles * kTile + more;
                    const std::vector<double> speeds = {1, second, third};
                    const auto got = sizesOf(tileSlices(
                            rows, {1, 1, 1}, {0, late, late}, speeds, kTile));
                    double best = INFINITY;
                    for (idx_t a = 0; a <= kTiles; ++a) {
                        for (idx_t b = 0; a + b <= kTiles; ++b) {
                            const std::vector<idx_t> sizes = {
                                    rows - (a + b) * kTile,
                                    a * kTile,
                                    b * kTile};
                            best = std::min(
                                    best, endOfLast(sizes, late, speeds));
                        }
                    }
                    ASSERT_LE(
                            endOfLast(got, late, speeds),
                            best + 0.25 * kTile + 1e-6);
                }
            }
        }
    }
}

/// Others than the first end one after the other, by as many queries each, and
/// by a sixteenth of them at most.
TEST(ReplicaSlices, EndOneAfterTheOther) {
    using Rows = std::vector<idx_t>;
    EXPECT_EQ(lateRowsOf(1, 10240, 250, 195), Rows({0}));
    EXPECT_EQ(lateRowsOf(2, 10240, 250, 195), Rows({0, 250}));
    EXPECT_EQ(lateRowsOf(4, 10240, 250, 195), Rows({0, 640, 445, 250}));
    EXPECT_EQ(lateRowsOf(4, 10240, 250, 320), Rows({0, 890, 570, 250}));
    EXPECT_EQ(lateRowsOf(4, 10240, 250, 5000), Rows({0, 890, 570, 250}));
    EXPECT_EQ(lateRowsOf(4, 10240, 0, 0), Rows({0, 0, 0, 0}));
    // What a group ends earlier by others search. Begins are rounded to steps,
    // and three of them are in the difference of two sizes, one twice.
    constexpr idx_t kStep = 64;
    const auto begins =
            inSteps(groupSlices(
                            40960,
                            {1, 1, 1, 1},
                            lateRowsOf(4, 10240, 250, 195),
                            {1, 1, 1, 1}),
                    kStep);
    EXPECT_EQ(begins.back(), 40960);
    for (int group = 2; group < 4; ++group) {
        const idx_t before = begins[group] - begins[group - 1];
        const idx_t size = begins[group + 1] - begins[group];
        EXPECT_GT(size, before);
        EXPECT_NEAR(double(size - before), 195, 2 * kStep);
    }
}

/// The last piece is the smallest; all but it have whole tiles.
TEST(ReplicaSlices, TheLastPieceIsShort) {
    constexpr idx_t kLeast = 2048;
    for (int pieces = 1; pieces <= 9; ++pieces) {
        for (const idx_t more : {0, 1, 255, 256, 3000, 50000}) {
            const idx_t rows = pieces * kLeast + more;
            ASSERT_EQ(pieceBegin(rows, pieces, 0), 0);
            ASSERT_EQ(pieceBegin(rows, pieces, pieces), rows);
            for (int piece = 0; piece < pieces; ++piece) {
                const idx_t begin = pieceBegin(rows, pieces, piece);
                const idx_t count = pieceBegin(rows, pieces, piece + 1) - begin;
                ASSERT_EQ(begin % kTile, 0);
                ASSERT_GE(count, kLeast) << rows << " in " << pieces;
                if (pieces > 1 && piece + 1 == pieces) {
                    ASSERT_LT(count, kLeast + kTile);
                }
            }
        }
    }
    EXPECT_EQ(pieceBegin(10240, 3, 1), 4096);
    EXPECT_EQ(pieceBegin(10240, 3, 2), 8192);
}

} // namespace
} // namespace faiss_bits::test
