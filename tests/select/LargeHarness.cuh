#pragma once

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/common/KnownKeys.cuh"
#include "tests/select/SelectHarness.h"

/// Matrices beyond 2^31 and 2^32 elements. Skipped, by name, where the device
/// has too little memory.
namespace faiss_bits::test {

/// Selects from rows of known keys, and compares keys and ids.
template <class T, class Method>
inline void expectBestOf(
        const T* keys,
        int64_t rows,
        int64_t cols,
        int k,
        const Method& method,
        const std::string& name) {
    SCOPED_TRACE(
            std::to_string(rows) + " x " + std::to_string(cols) +
            " k=" + std::to_string(k) +
            " sizeof(T)=" + std::to_string(sizeof(T)) + " " + name);
    DeviceBuffer<T> outKeys(rows * k, 0xA5);
    DeviceBuffer<int64_t> outIds(rows * k, 0xA5);

    SelectProblem p;
    p.rows = rows;
    p.cols = cols;
    p.k = k;
    p.keyType = sizeof(T) == 4 ? DataType::Float32 : DataType::Float16;
    p.keys = keys;
    p.outKeys = outKeys.data();
    p.outIds = outIds.data();
    p.device.multiprocessors = multiprocessorCount();
    const size_t bytes = method.workspaceBytes(p);
    if (!hasFreeMemory(bytes)) {
        GTEST_SKIP() << name << " needs " << (bytes >> 30) << " GiB of scratch";
    }
    DeviceBuffer<uint8_t> scratch(bytes);
    method.run(p, {scratch.data(), scratch.size()}, nullptr);

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

inline constexpr int64_t kTwoTo31 = int64_t(1) << 31;
inline constexpr int64_t kTwoTo32 = int64_t(1) << 32;

} // namespace faiss_bits::test
