/// Matrices beyond 2^31 and 2^32 elements. Skipped, by name, where the device
/// has too little memory.

#include <gtest/gtest.h>

#include "kernels/select/Select.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/KnownKeys.cuh"

namespace faiss_bits::test {
namespace {

/// Selects from rows of known keys, and compares keys and ids.
template <class T>
void expectBestOf(
        const T* keys,
        int64_t rows,
        int64_t cols,
        int k,
        SelectAlgorithm algorithm) {
    SCOPED_TRACE(
            std::to_string(rows) + " x " + std::to_string(cols) + " k=" +
            std::to_string(k) + " sizeof(T)=" + std::to_string(sizeof(T)) +
            " " + nameOf(algorithm));
    DeviceBuffer<T> outKeys(rows * k, 0xA5);
    DeviceBuffer<int64_t> outIds(rows * k, 0xA5);

    SelectProblem p;
    p.rows = rows;
    p.cols = cols;
    p.k = k;
    p.keyType = sizeof(T) == 4 ? DataType::Float32 : DataType::Float16;
    p.algorithm = algorithm;
    p.keys = keys;
    p.outKeys = outKeys.data();
    p.outIds = outIds.data();
    p.device = deviceTraits();
    const size_t bytes = selectWorkspaceBytes(p);
    if (!hasFreeMemory(bytes)) {
        GTEST_SKIP() << nameOf(algorithm) << " needs " << (bytes >> 30)
                     << " GiB of scratch";
    }
    DeviceBuffer<uint8_t> scratch(bytes);
    runSelect(p, {scratch.data(), scratch.size()}, nullptr);

    const auto gotKeys = outKeys.download();
    const auto gotIds = outIds.download();
    // Every row, or 2000 of them with the first and the last.
    const int64_t step = std::max<int64_t>(1, rows / 2000);
    int64_t checked = 0;
    for (int64_t i = 0; i < rows; i += step) {
        const int64_t row = i + step >= rows ? rows - 1 : i;
        const auto want = KnownKeys::best(row, cols, k);
        checked += want.empty() ? 0 : 1;
        for (size_t place = 0; place < want.size(); ++place) {
            const int64_t at = row * k + int64_t(place);
            ASSERT_EQ(gotIds[at], want[place].id)
                    << "row " << row << ", place " << place;
            ASSERT_EQ(float(gotKeys[at]), float(want[place].key))
                    << "row " << row << ", place " << place;
        }
    }
    // A short row may hold none of the keys whose rank is known.
    EXPECT_GT(checked * 10, rows / step * 7);
}

template <class T>
void expectKnownBest(int64_t rows, int64_t cols, int k) {
    DeviceBuffer<T> keys(size_t(rows) * cols, 0xFB);
    fillKnownKeys(keys.data(), rows, cols);
    expectBestOf(keys.data(), rows, cols, k, SelectAlgorithm::Auto);
}

class SelectLarge : public GpuTest {
   protected:
    bool lacksMemory(size_t bytes) {
        return !hasFreeMemory(bytes);
    }
};

#define SKIP_IF_MEMORY_LACKS(bytes)                                        \
    if (lacksMemory(bytes)) {                                              \
        GTEST_SKIP() << "needs " << ((bytes) >> 30) << " GiB of free GPU " \
                     << "memory";                                          \
    }

constexpr int64_t kTwoTo31 = int64_t(1) << 31;
constexpr int64_t kTwoTo32 = int64_t(1) << 32;

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

/// The same for every algorithm, one ctest case each.
class SelectLargeAlgorithm
        : public SelectLarge,
          public ::testing::WithParamInterface<SelectAlgorithm> {};

TEST_P(SelectLargeAlgorithm, MoreThanTwoTo32FloatsInManyRows) {
    const int64_t rows = 1040;
    const int64_t cols = int64_t(1) << 22;
    SKIP_IF_MEMORY_LACKS(size_t(rows) * cols * 4);
    DeviceBuffer<float> keys(size_t(rows) * cols, 0xFB);
    fillKnownKeys(keys.data(), rows, cols);
    expectBestOf(keys.data(), rows, cols, 64, GetParam());
}

TEST_P(SelectLargeAlgorithm, OneRowBeyondTwoTo31Halves) {
    const int64_t cols = kTwoTo31 + 12345;
    SKIP_IF_MEMORY_LACKS(size_t(cols) * 2);
    DeviceBuffer<__half> keys(cols, 0xFB);
    fillKnownKeys(keys.data(), 1, cols);
    expectBestOf(keys.data(), 1, cols, 1000, GetParam());
}

TEST_P(SelectLargeAlgorithm, TheLongestRow) {
    SKIP_IF_MEMORY_LACKS(size_t(kMaxSelectCols) * 2);
    DeviceBuffer<__half> keys(kMaxSelectCols, 0xFB);
    fillKnownKeys(keys.data(), 1, kMaxSelectCols);
    expectBestOf(keys.data(), 1, kMaxSelectCols, 100, GetParam());
}

INSTANTIATE_TEST_SUITE_P(
        All,
        SelectLargeAlgorithm,
        ::testing::ValuesIn(selectAlgorithms()),
        [](const auto& info) { return std::string(nameOf(info.param)); });

} // namespace
} // namespace faiss_bits::test
