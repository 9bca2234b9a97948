/// Which rows NarrowChunks.cuh has, and that it has room for them.

#include <gtest/gtest.h>

#include "kernels/common/Error.h"
#include "kernels/select/short_rows/FewOfLanesPlan.h"
#include "kernels/select/short_rows/NarrowChunksPlan.h"
#include "tests/select/OnH200.h"

namespace faiss_bits::test {
namespace {

SelectProblem halves(idx_t cols, int k) {
    return onH200(100000, cols, k, DataType::Float16);
}

TEST(NarrowChunksShapes, HaveRoom) {
    for (idx_t cols : {1025, 1500, 2017, 2018, 3071, 3072, 4096, 8192, 16384}) {
        for (int k = 1; k <= 512; ++k) {
            const SelectProblem p = halves(cols, k);
            const int sorted = narrowChunksSorted(p);
            if (sorted == 0) {
                continue;
            }
            // Less than k keys, and all of 64 columns that are equal.
            EXPECT_LE(k + 64, 32 * sorted) << cols << " k=" << k;
            EXPECT_EQ(fewOfLanesShape(p).items, 0) << cols << " k=" << k;
            EXPECT_NO_THROW(narrowChunksLaunch(p.keyType, sorted));
        }
    }
    EXPECT_THROW(narrowChunksLaunch(DataType::Float16, 4), Error);
    const auto sorted = [](idx_t cols, int k) {
        return narrowChunksSorted(halves(cols, k));
    };
    EXPECT_EQ(sorted(3071, 33), 0);
    EXPECT_EQ(sorted(3071, 34), 8);
    EXPECT_EQ(sorted(3071, 176), 8);
    EXPECT_EQ(sorted(3071, 177), 16);
    EXPECT_EQ(sorted(3072, 16), 0);
    EXPECT_EQ(sorted(3072, 17), 8);
    EXPECT_EQ(sorted(3072, 192), 8);
    EXPECT_EQ(sorted(3072, 193), 16);
    EXPECT_EQ(sorted(3072, 448), 16);
    EXPECT_EQ(sorted(3072, 449), 0);
}

TEST(NarrowChunksShapes, AreOf16BitKeysWithoutBias) {
    SelectProblem p = halves(5000, 100);
    EXPECT_GT(narrowChunksSorted(p), 0);
    p.keyType = DataType::BFloat16;
    EXPECT_GT(narrowChunksSorted(p), 0);
    p.keyType = DataType::Float32;
    EXPECT_EQ(narrowChunksSorted(p), 0);
    // A number has 16 bits for a column, of which all ones say none.
    EXPECT_EQ(narrowChunksSorted(halves(65536, 100)), 0);
    EXPECT_EQ(narrowChunksSorted(halves(1024, 100)), 0);
    EXPECT_EQ(narrowChunksSorted(halves(5000, 512)), 0);
    p = halves(5000, 100);
    p.rows = 16 * p.device.multiprocessors;
    EXPECT_EQ(narrowChunksSorted(p), 0);
    ++p.rows;
    EXPECT_GT(narrowChunksSorted(p), 0);
}

} // namespace
} // namespace faiss_bits::test
