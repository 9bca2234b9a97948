/// Every method of the program on matrices beyond 2^31 and 2^32 elements, one
/// ctest case each.

#include "tests/select/LargeHarness.cuh"
#include "tests/select/SelectMethod.h"

namespace faiss_bits::test {
namespace {

class SelectLargeAlgorithm
        : public SelectLarge,
          public ::testing::WithParamInterface<SelectMethod> {};

TEST_P(SelectLargeAlgorithm, MoreThanTwoTo32FloatsInManyRows) {
    const int64_t rows = 1040;
    const int64_t cols = int64_t(1) << 22;
    SKIP_IF_MEMORY_LACKS(size_t(rows) * cols * 4);
    DeviceBuffer<float> keys(size_t(rows) * cols, 0xFB);
    fillKnownKeys(keys.data(), rows, cols);
    expectBestOf(keys.data(), rows, cols, 64, GetParam(), GetParam().name);
}

TEST_P(SelectLargeAlgorithm, OneRowBeyondTwoTo31Halves) {
    const int64_t cols = kTwoTo31 + 12345;
    SKIP_IF_MEMORY_LACKS(size_t(cols) * 2);
    DeviceBuffer<__half> keys(cols, 0xFB);
    fillKnownKeys(keys.data(), 1, cols);
    expectBestOf(keys.data(), 1, cols, 1000, GetParam(), GetParam().name);
}

TEST_P(SelectLargeAlgorithm, TheLongestRow) {
    SKIP_IF_MEMORY_LACKS(size_t(kMaxSelectCols) * 2);
    DeviceBuffer<__half> keys(kMaxSelectCols, 0xFB);
    fillKnownKeys(keys.data(), 1, kMaxSelectCols);
    expectBestOf(
            keys.data(), 1, kMaxSelectCols, 100, GetParam(), GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(
        All,
        SelectLargeAlgorithm,
        ::testing::ValuesIn(contractMethods()),
        [](const auto& info) { return info.param.name; });

} // namespace
} // namespace faiss_bits::test
