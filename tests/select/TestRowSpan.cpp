/// Which columns stream where rows begin at any address: over every address
/// and both sides of every edge, each column is read exactly once.

#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/select/RowSpan.h"
#include "kernels/select/Select.h"

namespace faiss_bits::test {
namespace {

struct Row {
    uintptr_t address;
    size_t keyBytes;
    uint32_t cols;
    uint32_t tile;
    uint32_t segment;
};

/// Times that each column is read by the blocks of a row. Fails where a stream
/// does not begin at a line, or a tile is not whole.
std::vector<int> reads(const Row& r) {
    std::vector<int> times(r.cols, 0);
    const uint32_t splits = (r.cols + r.segment - 1) / r.segment;
    for (uint32_t split = 0; split < splits; ++split) {
        const RowSpan s(
                r.address, r.keyBytes, r.cols, r.tile, split, r.segment);
        EXPECT_LE(s.headEnd, r.cols);
        EXPECT_LE(s.end, r.cols);
        EXPECT_EQ(s.tail, s.begin + s.numTiles * r.tile);
        EXPECT_LE(s.tail, s.end);
        EXPECT_LT(s.end - s.tail, r.tile);
        EXPECT_LT(s.headEnd, kStreamLine / r.keyBytes);
        if (s.numTiles > 0) {
            EXPECT_EQ((r.address + s.begin * r.keyBytes) % kStreamLine, 0);
        }
        // All but the last segment are whole tiles.
        if (split + 1 < splits) {
            EXPECT_TRUE(s.tail == s.end || s.end == r.cols);
        }
        for (uint32_t c = 0; c < s.headEnd; ++c) {
            ++times[c];
        }
        for (uint32_t c = s.begin; c < s.end; ++c) {
            ++times[c];
        }
    }
    return times;
}

void expectEachOnce(const Row& r) {
    for (uint32_t c = 0; const int n : reads(r)) {
        ASSERT_EQ(n, 1) << "column " << c << " of " << r.cols << " at "
                        << r.address % kStreamLine << ", keys of " << r.keyBytes
                        << " bytes, tile " << r.tile << ", segment "
                        << r.segment;
        ++c;
    }
}

/// Both sides of what ends with a head, a tile, a segment, and both.
std::set<uint32_t> edges(uint32_t tile, uint32_t segment, uint32_t line) {
    std::set<uint32_t> all = {1, 2, 3};
    for (const uint32_t at :
         {line,
          tile,
          tile + line,
          2 * tile,
          segment,
          segment + line,
          2 * segment,
          2 * segment + line,
          3 * segment + tile}) {
        for (const uint32_t cols :
             {at - line + 1, at - 2, at - 1, at, at + 1, at + line - 1}) {
            all.insert(cols);
        }
    }
    all.erase(0);
    return all;
}

TEST(RowSpan, EveryColumnOfASplitRowIsReadOnce) {
    for (const size_t keyBytes : {2, 4}) {
        const uint32_t line = kStreamLine / uint32_t(keyBytes);
        for (uintptr_t at = 0; at < kStreamLine; at += keyBytes) {
            for (const uint32_t tiles : {1u, 3u}) {
                const uint32_t tile = 256;
                for (const uint32_t cols : edges(tile, tiles * tile, line)) {
                    expectEachOnce(
                            {4096 + at, keyBytes, cols, tile, tiles * tile});
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST(RowSpan, EveryColumnOfAWholeRowIsReadOnce) {
    for (const size_t keyBytes : {2, 4}) {
        const uint32_t line = kStreamLine / uint32_t(keyBytes);
        for (uintptr_t at = 0; at < kStreamLine; at += keyBytes) {
            for (const uint32_t cols : edges(2048, 4096, line)) {
                expectEachOnce({4096 + at, keyBytes, cols, 2048, cols});
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// The most columns that a selection takes: no sum of columns wraps around.
TEST(RowSpan, TheLongestRow) {
    const uint32_t cols = uint32_t(kMaxSelectCols);
    const uint32_t segment = 32 * 4096;
    const uint32_t splits = uint32_t((uint64_t(cols) + segment - 1) / segment);
    uint32_t next = 31;
    for (uint32_t split = 0; split < splits; ++split) {
        const RowSpan s(4096 + 4, 4, cols, 4096, split, segment);
        ASSERT_EQ(s.begin, next) << split;
        ASSERT_EQ(s.headEnd, split == 0 ? 31u : 0u);
        next = s.end;
    }
    EXPECT_EQ(next, cols);
}

/// A row whose last segment is shorter than what the first has more: nothing
/// is left for it.
TEST(RowSpan, ALastSegmentWithNothingLeft) {
    const RowSpan s(4096 + 4, 4, 4096 + 30, 4096, 1, 4096);
    EXPECT_EQ(s.begin, 4096u + 30);
    EXPECT_EQ(s.end, s.begin);
    EXPECT_EQ(s.numTiles, 0u);
    EXPECT_EQ(s.headEnd, 0u);
}

} // namespace
} // namespace faiss_bits::test
