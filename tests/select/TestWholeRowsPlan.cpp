/// Plans of one block a row. None makes a CUDA call.

#include <algorithm>

#include <gtest/gtest.h>

#include "kernels/select/threshold/ThresholdPlan.h"
#include "tests/select/OnH200.h"

namespace faiss_bits::test {
namespace {

/// One block a row, all rows at once or many rounds of them, has as many blocks
/// as its registers allow, and every other plan as much room as it asks for.
TEST(WholeRowsPlans, ManyRowsFillTheMultiprocessors) {
    const auto plan = [](idx_t rows, idx_t cols, int k, DataType type) {
        return planThreshold(onH200(rows, cols, k, type));
    };
    const auto expect = [&](idx_t rows, idx_t cols, int threads, int blocks) {
        for (const DataType type : {DataType::Float32, DataType::Float16}) {
            const ThresholdPlan one = plan(rows, cols, 10, type);
            EXPECT_TRUE(one.fused) << rows << " x " << cols;
            EXPECT_EQ(one.policy.threads, threads) << rows << " x " << cols;
            // What a block has beside its tiles and its survivors.
            const size_t besides = 1024 + 4 * 4 * size_t(threads) + 640;
            const size_t bytes = besides +
                    one.stages * threads * 16 * sizeOf(type) +
                    8 * size_t(one.capacity);
            EXPECT_LE(blocks * bytes, 228u * 1024) << one.toString();
        }
    };
    expect(133, 250000, 256, 3);
    expect(330, 90000, 256, 4);
    expect(1056, 198304, 128, 8);
    expect(14374, 143967, 128, 8);
    expect(4460, 139617, 128, 8);
    // Fewer blocks with three tiles each, where a second round is nearly empty.
    EXPECT_EQ(plan(1373, 139489, 10, DataType::Float32).stages, 3);
    EXPECT_EQ(plan(14374, 143967, 10, DataType::Float32).stages, 2);
    // Long rows are split, and so are few, and those of larger k.
    EXPECT_FALSE(plan(200, idx_t(1) << 19, 10, DataType::Float32).fused);
    EXPECT_FALSE(plan(110, 200000, 10, DataType::Float32).fused);
    EXPECT_TRUE(plan(300, 200000, 1024, DataType::Float32).fused);
    EXPECT_FALSE(plan(300, 200000, 1025, DataType::Float32).fused);
    EXPECT_FALSE(plan(300, 200000, 129, DataType::Float16).fused);
}

/// Of rows whose neighbours are alike more survive: there is room for them
/// where as many blocks fit a multiprocessor as without it.
TEST(WholeRowsPlans, RoomForRowsWhoseNeighboursAreAlike) {
    const auto expect = [](idx_t cols,
                           int k,
                           DataType type,
                           int room,
                           int least,
                           int most) {
        const ThresholdPlan one = planThreshold(onH200(100000, cols, k, type));
        ASSERT_TRUE(one.fused) << one.toString();
        EXPECT_EQ(one.policy.room, room) << one.toString();
        EXPECT_GE(int(one.capacity), least) << one.toString();
        EXPECT_LE(int(one.capacity), most) << one.toString();
        const size_t words = one.stages * 256 * 2 * sizeOf(type);
        const size_t bytes = 1024 + 4 * 2048 + 640 +
                8 * (std::max(words, size_t(2 * room)) + one.capacity);
        EXPECT_LE(4 * bytes, 228u * 1024) << one.toString();
    };
    // 697, 892 and 1,095 would do for random keys; the highest rank leaves as
    // many as the fifth number in the mean.
    expect(7504, 262, DataType::Float16, 1024, 1099, 1260);
    expect(6536, 273, DataType::Float16, 1024, 1493, 1680);
    expect(8955, 503, DataType::Float32, 1024, 1695, 1940);
    // More would cost a block.
    expect(8759, 1063, DataType::Float32, 2048, 1910, 1910);
}

} // namespace
} // namespace faiss_bits::test
