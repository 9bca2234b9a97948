#pragma once

#include <vector>

#include <cuda_runtime_api.h>

#include "faiss_bits/common/FaissCompat.h"
#include "kernels/ivf/IvfLists.h"

namespace faiss::gpu {
class GpuIndex;
class GpuIndexIVF;
class IVFBase;
} // namespace faiss::gpu

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Inverted lists of one of our indexes as they are when it is made, to come
/// back to after an addition.
class ListsBefore {
   public:
    /// Of a trained GpuIndexBitsIVFFlat, GpuIndexBitsIVFScalarQuantizer or
    /// GpuIndexBitsIVFPQ, else FaissException. The index outlives it and is not
    /// trained anew.
    explicit ListsBefore(faiss::gpu::GpuIndex& index);

    /// How many vectors they have more.
    idx_t numAdded() const;

    bool had(idx_t list, idx_t place) const {
        return place < lengths_[list];
    }

    /// Vectors of each list.
    const std::vector<idx_t>& lengths() const {
        return lengths_;
    }

    /// Takes additions back, whole ones and those that failed, and the index's
    /// ntotal. Waits for the stream.
    void restore(cudaStream_t stream) const;

   private:
    faiss::gpu::GpuIndexIVF* index_ = nullptr;
    faiss::gpu::IVFBase* base_ = nullptr;
    IvfLists lists_;
    std::vector<idx_t> lengths_;
    idx_t ntotal_ = 0;
};

} // namespace faiss_bits::gpu::detail
