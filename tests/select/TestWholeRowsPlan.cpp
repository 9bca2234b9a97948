/// Plans of one block a row. None makes a CUDA call.

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
    expect(1056, 98304, 128, 8);
    expect(14374, 43967, 128, 8);
    expect(4460, 139617, 128, 8);
    // Fewer blocks with three tiles each, where a second round is nearly empty.
    EXPECT_EQ(plan(1373, 39489, 10, DataType::Float32).stages, 3);
    EXPECT_EQ(plan(14374, 43967, 10, DataType::Float32).stages, 2);
    // Long rows are split, and so are few, and those of larger k.
    EXPECT_FALSE(plan(200, idx_t(1) << 19, 10, DataType::Float32).fused);
    EXPECT_FALSE(plan(110, 200000, 10, DataType::Float32).fused);
    EXPECT_TRUE(plan(300, 200000, 1024, DataType::Float32).fused);
    EXPECT_FALSE(plan(300, 200000, 1025, DataType::Float32).fused);
    EXPECT_FALSE(plan(300, 200000, 129, DataType::Float16).fused);
}

} // namespace
} // namespace faiss_bits::test
