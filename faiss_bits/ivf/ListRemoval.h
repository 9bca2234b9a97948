#pragma once

#include <vector>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/ivf/ListFilter.h"
#include "kernels/ivf/IvfSelectedCopy.h"

namespace faiss::gpu {
class IVFBase;
} // namespace faiss::gpu

/// Vectors that leave the lists of FAISS's GPU indexes. Not part of the API.
namespace faiss_bits::gpu::detail {

/// The removal of what a filter has selected of lists. As in FAISS on the CPU
/// the first places that become free go to the last of the vectors that stay.
///
/// Stream   waits for the device
/// Memory   4 bytes for 32 vectors and for each that is removed, temporary,
///          from when it is made. What the lists have taken stays theirs, until
///          FAISS's reclaimMemory
/// Errors   of the constructor: FaissException, for 2^32 vectors or more among
///          others; nothing has changed then. run() throws nothing but what
///          leaves the device unusable
class ListRemoval {
   public:
    /// The filter and the lists outlive it, unchanged.
    ListRemoval(
            const GpuContext& context,
            ListFilter& filter,
            faiss::gpu::IVFBase& index);

    ListRemoval(const ListRemoval&) = delete;
    ListRemoval& operator=(const ListRemoval&) = delete;

    idx_t numRemoved() const {
        return numRemoved_;
    }

    void run();

   private:
    IvfSelectedCount count_();

    const GpuContext& context_;
    const IvfLists& lists_;
    faiss::gpu::IVFBase& index_;
    TemporaryMemory counts_;
    TemporaryMemory scratch_;
    size_t countBytes_ = 0;
    size_t scratchBytes_ = 0;
    idx_t numRemoved_ = 0;
    std::vector<idx_t> lengths_;              // that will be left
    std::vector<std::vector<idx_t>> hostIds_; // likewise, of INDICES_CPU
};

} // namespace faiss_bits::gpu::detail
