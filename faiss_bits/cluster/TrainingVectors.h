#pragma once

#include <functional>
#include <vector>

#include "faiss_bits/common/GpuStaging.h"
#include "kernels/common/Types.h"

namespace faiss_bits::gpu::detail {

/// Rows [first, first + rows) of the training vectors, on the device.
struct TrainingBlock {
    idx_t first = 0;
    idx_t rows = 0;
    const float* vectors = nullptr; ///< [rows, d]
    const float* weights = nullptr; ///< [rows] or nullptr
};

/// The vectors of a clustering, wherever they lie: on the device they are used
/// in place; from the host they are copied once, or, if they do not fit, block
/// by block in every pass. Not part of the API.
class TrainingVectors {
   public:
    /// Looks at where x [n, d] and weights ([n] or nullptr) lie; copies
    /// nothing.
    TrainingVectors(
            const GpuContext& context,
            idx_t n,
            int d,
            const float* x,
            const float* weights);

    idx_t size() const {
        return n_;
    }

    /// Keeps these rows alone, in this order: a copy where the vectors lie.
    void takeSample(const std::vector<idx_t>& rows);

    /// Copies the vectors to the device if they take no more than mostBytes,
    /// and the weights in any case. Vectors of the device stay where they are.
    void load(size_t mostBytes);

    /// Throws FaissException, as FAISS does, if a component is NaN or infinite.
    /// One read of the vectors where they lie.
    void requireFinite() const;

    /// The same of the weights, after load().
    void requireFiniteWeights() const;

    /// Rows by number to out [rows, d] on the device.
    void gather(const std::vector<idx_t>& rows, float* out) const;

    /// Calls `work` with all rows, clusterBlockRows(d) at a time and in order,
    /// after load(). Work that it enqueues on the context's stream finds the
    /// block there.
    void forBlocks(const std::function<void(const TrainingBlock&)>& work) const;

   private:
    void gatherOnDevice_(
            const float* from,
            int components,
            const std::vector<idx_t>& rows,
            float* out) const;

    const GpuContext& context_;
    idx_t n_;
    int d_;
    const float* x_;
    const float* weights_;
    bool onDevice_;
    bool weightsOnDevice_;
    std::vector<float> hostSample_;
    std::vector<float> hostWeights_;
    float* blockCopy_ = nullptr; // of vectors that stay on the host
    faiss::gpu::GpuMemoryReservation vectorMemory_;
    faiss::gpu::GpuMemoryReservation weightMemory_;
};

} // namespace faiss_bits::gpu::detail
