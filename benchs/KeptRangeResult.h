#pragma once

#include "benchs/common/DeviceData.h"
#include "faiss_bits/range/GpuRangeResult.h"

namespace faiss_bits::bench {

/// Memory that is there before the call, as a caching allocator has it.
class KeptResult : public gpu::GpuRangeResult {
   public:
    Part allocate(idx_t size) override {
        wanted_ += size;
        if (used_ + size > idx_t(distances_.size())) {
            return GpuRangeResult::allocate(size);
        }
        Part part;
        part.size = size;
        part.distances = distances_.data() + used_;
        part.labels = labels_.data() + used_;
        used_ += size;
        return part;
    }

    /// Before a call.
    void reset() {
        if (wanted_ > idx_t(distances_.size())) {
            distances_ = DeviceArray<float>();
            labels_ = DeviceArray<idx_t>();
            distances_ = DeviceArray<float>(size_t(wanted_));
            labels_ = DeviceArray<idx_t>(size_t(wanted_));
        }
        used_ = wanted_ = 0;
    }

   private:
    DeviceArray<float> distances_;
    DeviceArray<idx_t> labels_;
    idx_t used_ = 0;
    idx_t wanted_ = 0;
};

} // namespace faiss_bits::bench
