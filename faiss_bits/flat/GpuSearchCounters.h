#pragma once

#include <atomic>

#include "faiss_bits/common/GpuStaging.h"
#include "kernels/common/SearchMode.h"

namespace faiss_bits::gpu::detail {

/// What the searches of an index did (SearchStats). The number of repeated
/// queries is known to the device alone, and that of scored candidates where
/// they come from lists.
class GpuSearchCounters {
   public:
    /// Takes 16 bytes of the device.
    explicit GpuSearchCounters(const GpuContext& context);

    /// On the device; kernels add to it.
    unsigned long long* repeated() {
        return repeated_;
    }
    unsigned long long* rescored() {
        return repeated_ + 1;
    }

    void add(idx_t queries, idx_t rescored) {
        queries_ += queries;
        rescored_ += rescored;
    }

    /// There are searches on other streams than read() and reset() are for.
    void useOtherStreams() {
        usesOtherStreams_ = true;
    }

    /// Both wait for the stream, or for the device where other streams are
    /// used.
    SearchStats read(const GpuContext& context) const;
    void reset(const GpuContext& context);

   private:
    void waitForOthers_() const;

    faiss::gpu::GpuMemoryReservation memory_;
    unsigned long long* repeated_;
    std::atomic<int64_t> queries_ = 0;
    std::atomic<int64_t> rescored_ = 0;
    std::atomic<bool> usesOtherStreams_ = false;
};

} // namespace faiss_bits::gpu::detail
