#include "benchs/SelectKeys.h"

#include <algorithm>

namespace faiss_bits::bench {

std::string SelectKeys::refusal(const SelectCell& cell) const {
    if (cell.order == Order::Sift) {
        return vectors_.refusal(cell.rows, cell.cols);
    }
    return isPlain(cell.order) ? "" : "an order of bench_select_sweep";
}

void SelectKeys::prepare(const SelectCell& cell) {
    if (data_.size() > 0 && last_.hasKeysOf(cell)) {
        return;
    }
    last_ = cell;
    const int64_t bytes = cell.rows * cell.cols * int64_t(sizeOf(cell.type));
    // Slices start at multiples of 256 bytes, as cudaMalloc gives them.
    stride_ = (bytes + 255) / 256 * 256;
    slices_ = std::clamp<int64_t>((int64_t(1) << 32) / stride_, 1, 64);
    if (size_t(slices_ * stride_) > data_.size()) {
        data_ = DeviceArray<uint8_t>();
        data_ = DeviceArray<uint8_t>(slices_ * stride_);
    }
    for (int64_t i = 0; i < slices_; ++i) {
        if (cell.order == Order::Sift) {
            vectors_.fill(at(int(i)), cell.type, cell.rows, cell.cols);
        } else {
            fillKeys(
                    at(int(i)),
                    cell.type,
                    cell.rows,
                    cell.cols,
                    cell.order,
                    uint64_t(i) + 1);
        }
    }
}

} // namespace faiss_bits::bench
