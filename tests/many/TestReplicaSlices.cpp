/// Slices of whole tiles, and pieces of results: arithmetic, and no device.

#include <gtest/gtest.h>

#include "faiss_bits/many/ReplicaSlices.h"
#include "faiss_bits/many/ShardMap.h"

namespace faiss_bits::test {
namespace {

using gpu::detail::groupSlices;
using gpu::detail::pieceBegin;

TEST(ReplicaSlices, OfWholeTiles) {
    constexpr idx_t kTile = 128;
    for (const idx_t rows : {0, 1, 100, 127, 128, 1001, 8192, 20500, 40960}) {
        for (const std::vector<double>& speeds :
             std::vector<std::vector<double>>{
                     {},
                     {1, 1, 1, 1},
                     {0.97, 1.02, 1, 1.01},
                     {0.25, 0.25, 0.25, 3.25},
                     {3.97, 0.01, 0.01, 0.01}}) {
            for (const idx_t late : {0, 40, 700}) {
                const std::vector<idx_t> lateRows = {0, late, late, late};
                const auto plain =
                        groupSlices(rows, {1, 1, 1, 1}, lateRows, speeds);
                const auto got = groupSlices(
                        rows, {1, 1, 1, 1}, lateRows, speeds, kTile);
                ASSERT_EQ(got.size(), 5u);
                ASSERT_EQ(got.front(), 0);
                ASSERT_EQ(got.back(), rows);
                ASSERT_GE(got[1], 0);
                for (int group = 1; group < 4; ++group) {
                    const idx_t is = got[group + 1] - got[group];
                    const idx_t was = plain[group + 1] - plain[group];
                    ASSERT_GE(is, 0);
                    ASSERT_EQ(is % kTile, 0) << rows << " group " << group;
                    if (speeds.empty() || speeds[0] < 2) {
                        ASSERT_LE(std::abs(is - was), 3 * kTile / 2);
                    }
                }
            }
        }
    }
    EXPECT_EQ(
            groupSlices(40960, {1, 1, 1, 1}, {0, 140, 140, 140}, {}, kTile),
            (std::vector<idx_t>{0, 10240, 20480, 30720, 40960}));
    EXPECT_EQ(
            groupSlices(20480, {1, 1}, {0, 140}, {}, kTile),
            (std::vector<idx_t>{0, 10240, 20480}));
    EXPECT_EQ(
            groupSlices(20480, {1, 1}, {0, 256}, {}, kTile),
            (std::vector<idx_t>{0, 10368, 20480}));
    EXPECT_EQ(
            groupSlices(20480, {1, 1}, {}, {1.02, 0.98}, kTile),
            (std::vector<idx_t>{0, 10368, 20480}));
}

/// The last piece is the smallest; all but it have whole tiles.
TEST(ReplicaSlices, TheLastPieceIsShort) {
    constexpr idx_t kLeast = 2048;
    for (int pieces = 1; pieces <= 9; ++pieces) {
        for (const idx_t more : {0, 1, 127, 128, 3000, 50000}) {
            const idx_t rows = pieces * kLeast + more;
            ASSERT_EQ(pieceBegin(rows, pieces, 0), 0);
            ASSERT_EQ(pieceBegin(rows, pieces, pieces), rows);
            for (int piece = 0; piece < pieces; ++piece) {
                const idx_t begin = pieceBegin(rows, pieces, piece);
                const idx_t count =
                        pieceBegin(rows, pieces, piece + 1) - begin;
                ASSERT_EQ(begin % 128, 0);
                ASSERT_GE(count, kLeast) << rows << " in " << pieces;
                if (pieces > 1 && piece + 1 == pieces) {
                    ASSERT_LT(count, kLeast + 128);
                }
            }
        }
    }
    EXPECT_EQ(pieceBegin(10240, 3, 1), 4096);
    EXPECT_EQ(pieceBegin(10240, 3, 2), 8192);
}

} // namespace
} // namespace faiss_bits::test
