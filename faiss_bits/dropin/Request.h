/// A call of one of FAISS's selection functions, and how it runs on ours.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/common/Types.h"

namespace faiss_bits::dropin {

/// Strides in elements; device memory of the current device.
struct Request {
    idx_t rows = 0;
    idx_t cols = 0;
    int k = 0;
    bool largest = false;
    IdType idType = IdType::Int64; ///< of ids and outIds

    const void* keys = nullptr; ///< [rows, cols] floats
    idx_t keyStride = 0;
    const void* ids = nullptr; ///< [rows, cols]; nullptr: column numbers
    idx_t idStride = 0;
    const float* colBias = nullptr; ///< [cols], added to the keys, or nullptr

    void* outKeys = nullptr; ///< [rows, k] floats
    idx_t outKeyStride = 0;
    void* outIds = nullptr; ///< [rows, k] of idType
    idx_t outIdStride = 0;

    /// What makes FAISS's own function end the process, as text; empty if the
    /// shapes of the tensors agree.
    std::string mismatch;
};

/// Why the request must go to FAISS's own function, or an empty string.
std::string refusalOf(const Request& request);

/// Selects as FAISS does.
///
/// Result   best first. A key that is not better than the worst finite number
///          (+max for the smallest, -max for the largest; so NaN, and an
///          infinity on that side) is never returned: its place, and those of
///          rows with fewer than k keys, are (that number, -1). Equal keys:
///          lower column first, which FAISS leaves open
/// Aliases  the outputs may lie in the inputs, as FAISS reads a row before it
///          writes one; that costs scratch for a copy of the outputs
/// Stream   enqueues on `stream` and never waits; can be captured in a graph
/// Memory   selectWorkspaceBytes of the problem, from Scratch
/// Errors   throws Error when a CUDA call fails or the device cannot run this
///          build
void select(const Request& request, cudaStream_t stream);

} // namespace faiss_bits::dropin
