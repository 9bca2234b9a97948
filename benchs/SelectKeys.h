#pragma once

#include <cstdint>
#include <string>

#include "benchs/SelectCells.h"
#include "benchs/common/DeviceData.h"
#include "benchs/common/VectorFile.h"

namespace faiss_bits::bench {

/// The keys of one shape, type and order, as many times as fit 4 GiB, so that
/// no repeat finds its keys in the L2.
class SelectKeys {
   public:
    /// Vectors for Order::Sift; see VectorFile::read.
    void readVectors(const std::string& path) {
        vectors_.read(path);
    }

    /// Why prepare() cannot make the keys, or an empty string.
    std::string refusal(const SelectCell& cell) const;

    /// Makes the keys, unless the last call made the same.
    void prepare(const SelectCell& cell);

    void* at(int i) const {
        return data_.data() + i % slices_ * stride_;
    }

    /// False if the slices together stay within reach of the L2.
    bool isBeyondCache() const {
        return slices_ * stride_ > (int64_t(1) << 28);
    }

   private:
    VectorFile vectors_;
    DeviceArray<uint8_t> data_;
    SelectCell last_;
    int64_t stride_ = 0;
    int64_t slices_ = 1;
};

} // namespace faiss_bits::bench
