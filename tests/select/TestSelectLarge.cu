/// Matrices beyond 2^31 and 2^32 elements. Skipped, by name, where the device
/// has too little memory.

#include <gtest/gtest.h>

#include "tests/select/LargeHarness.cuh"

namespace faiss_bits::test {
namespace {

template <class T>
void expectKnownBest(int64_t rows, int64_t cols, int k) {
    DeviceBuffer<T> keys(size_t(rows) * cols, 0xFB);
    fillKnownKeys(keys.data(), rows, cols);
    expectBestOf(keys.data(), rows, cols, k, RunSelect{}, "auto");
}

TEST_F(SelectLarge, MoreThanTwoTo32FloatsInFewRows) {
    const int64_t cols = (int64_t(1) << 30) + 7;
    SKIP_IF_MEMORY_LACKS(size_t(5) * cols * 4);
    for (int k : {1, 100, 900}) {
        expectKnownBest<float>(5, cols, k);
    }
}

TEST_F(SelectLarge, MoreThanTwoTo32FloatsInManyRows) {
    const int64_t cols = int64_t(1) << 22;
    SKIP_IF_MEMORY_LACKS(size_t(1040) * cols * 4);
    for (int k : {1, 2, 64}) {
        expectKnownBest<float>(1040, cols, k);
    }
}

TEST_F(SelectLarge, MoreThanTwoTo31FloatsInManyRows) {
    const int64_t cols = int64_t(1) << 24;
    SKIP_IF_MEMORY_LACKS(size_t(130) * cols * 4);
    expectKnownBest<float>(130, cols, 10);
}

TEST_F(SelectLarge, OneRowBeyondTwoTo31) {
    const int64_t cols = kTwoTo31 + 12345;
    SKIP_IF_MEMORY_LACKS(size_t(cols) * 4);
    for (int k : {1, 2000}) {
        expectKnownBest<float>(1, cols, k);
        expectKnownBest<__half>(1, cols, k);
    }
}

TEST_F(SelectLarge, TheLongestRow) {
    SKIP_IF_MEMORY_LACKS(size_t(kMaxSelectCols) * 2);
    for (int k : {1, 128, 2048}) {
        expectKnownBest<__half>(1, kMaxSelectCols, k);
    }
}

TEST_F(SelectLarge, MoreThanTwoTo32Halves) {
    const int64_t cols = (int64_t(1) << 28) + 3;
    SKIP_IF_MEMORY_LACKS(size_t(17) * cols * 2);
    static_assert(17 * ((int64_t(1) << 28) + 3) > kTwoTo32);
    expectKnownBest<__half>(17, cols, 200);
}

} // namespace
} // namespace faiss_bits::test
