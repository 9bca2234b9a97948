#pragma once

#include <memory>

#include "faiss_bits/common/GpuStaging.h"

namespace faiss::gpu {
class FlatIndex;
}

/// What our indexes do with faiss::gpu::FlatIndex, the object that holds the
/// vectors of a GpuIndexFlat: the only place that knows its inside, so that
/// the rest compiles without nvcc and without FAISS's internal headers.
///
/// A FlatIndex of FAISS's holds float32 or float16. Where ours holds bfloat16,
/// it says that it has 0 dimensions: n vectors, as everyone expects, but no
/// components that FAISS could take for floats. docs/design/faiss.md
namespace faiss_bits::gpu::detail {

/// The vectors of a FlatIndex, on its device.
struct FlatView {
    const void* vectors = nullptr; ///< [n, d], row-major
    DataType dataType = DataType::Float32;
    idx_t n = 0;
    const float* norms = nullptr; ///< [n] squared L2 norms; null if not kept
    const float* greatestNorm = nullptr; ///< [1] of them; null if not kept
};

/// Of vectors of d dimensions stored as `type`.
///
/// Errors     FaissException if `data` holds another type: GpuIndexFlat's own
///            copyFrom has replaced it, which knows nothing of bfloat16
FlatView viewOf(faiss::gpu::FlatIndex& data, DataType type);

/// Makes room for `capacity` vectors of d dimensions in all. What is there
/// stays.
void reserveVectors(
        faiss::gpu::FlatIndex& data,
        int d,
        idx_t capacity,
        cudaStream_t stream);

/// Appends n vectors, rounded to the type that is stored.
///
/// x          [n, d] float32, on the host or on the context's device
/// Errors     FaissException when memory is short; `data` then holds what it
///            held before
/// Stream     enqueues, and waits if x is on the host until it may be used
///            again
/// Cost       reads x once; unlike FAISS, the norms of the vectors that were
///            there before are copied, not computed again
void appendVectors(
        const GpuContext& context,
        faiss::gpu::MemorySpace space,
        faiss::gpu::FlatIndex& data,
        int d,
        const float* x,
        idx_t n);

/// Forgets the vectors from n on, 0 <= n <= those that are there. Their memory
/// stays reserved. Cannot run out of memory: without n floats for the norms the
/// index goes on without norms of its own, and searches find them.
void truncateVectors(
        const GpuContext& context,
        faiss::gpu::MemorySpace space,
        faiss::gpu::FlatIndex& data,
        int d,
        idx_t n);

/// Replaces `data` by a new FlatIndex that holds n vectors x of d dimensions,
/// stored as `type`. If that fails, `data` is what it was; so both exist for a
/// moment.
void rebuild(
        const GpuContext& context,
        faiss::gpu::MemorySpace space,
        std::unique_ptr<faiss::gpu::FlatIndex>& data,
        int d,
        DataType type,
        const float* x,
        idx_t n);

} // namespace faiss_bits::gpu::detail
