#pragma once

#include <cstdint>

#include "benchs/common/DeviceData.h"
#include "kernels/common/Types.h"

namespace faiss_bits::bench {

/// The k best keys of every row, as a method left them. All on the device.
struct SelectAnswer {
    const void* keys = nullptr; ///< [rows, cols] with `stride`
    int64_t rows = 0;
    int64_t cols = 0;
    int64_t stride = 0;
    int k = 0;
    DataType type = DataType::Float32;
    bool largest = false;
    const void* outKeys = nullptr; ///< [rows, k] of type
    const void* outIds = nullptr;  ///< [rows, k] of idType
    IdType idType = IdType::Int64;
    /// Equal keys: the lower column is better. false: any of them.
    bool lowerColumnFirst = false;
};

/// Checks answers by what they mean, without another selection: a row is right
/// if its ids are columns, each once, its keys are those of the ids (zeros of
/// any sign), best first with NaN behind every number, and as many columns come
/// before its last place as places do. Exact for any keys.
class SelectCheck {
   public:
    /// For answers of at most so many rows, and rows * cols keys.
    SelectCheck(int64_t mostRows, int64_t mostKeys);

    /// Rows that are wrong. Waits.
    int64_t wrongRows(const SelectAnswer& answer);

   private:
    DeviceArray<uint32_t> seen_;  // a bit a key
    DeviceArray<uint32_t> state_; // [3, rows]: see SelectCheck.cu
};

} // namespace faiss_bits::bench
