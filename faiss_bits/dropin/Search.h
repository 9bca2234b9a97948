/// A call of one of FAISS's whole searches, and how it runs on our kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "faiss_bits/dropin/LoadedFaiss.h"
#include "kernels/common/Types.h"

namespace faiss_bits::dropin {

struct SearchMatrix {
    const float* data = nullptr; ///< [count, d], or [d, count]
    bool rowMajor = true;
    idx_t count = 0;
    idx_t d = 0;
    bool isDense = true; ///< nothing lies between its rows, or columns
};

/// Device memory of the current device.
struct SearchRequest {
    Metric metric = Metric::L2; ///< or InnerProduct
    SearchMatrix vectors;
    SearchMatrix queries;
    int k = 0;
    IdType idType = IdType::Int64;

    float* outDistances = nullptr; ///< [queries, k]
    void* outIds = nullptr;        ///< [queries, k] of idType
    bool outputsAreDense = true;

    /// What makes FAISS's own function end the process, as text; empty if the
    /// shapes of the tensors agree.
    std::string mismatch;
};

/// Why the request must go to FAISS's own function, or an empty string.
std::string refusalOf(const SearchRequest& request);

/// Searches as FAISS does, or leaves it to FAISS where FAISS with our selection
/// is as fast, or we have nothing else. Which of the two depends on shapes,
/// layouts, k and the device alone. Then it returns what it left, as text, and
/// has enqueued nothing; else an empty string.
///
/// Result   canonical distances (kernels/canonical/Distance.h), rounded to
///          float, best first; equal distances: lower id first. A distance that
///          is not better than the worst finite number is never returned, as in
///          FAISS: its place, and those of searches with fewer than k vectors,
///          are (that number, -1)
/// Stream   enqueues on `stream` and never waits; can be captured in a graph
/// Memory   from Scratch: for more than 16 queries about n (2.1 d + 38) bytes,
///          a copy of the vectors of 16 bits a component that is made for the
///          call; for lists and a sample up to 1 GiB
/// Errors   throws Error when a CUDA call fails, the device cannot run this
///          build, or FAISS has no cuBLASLt, which more than 16 queries need
std::string search(
        const SearchRequest& request,
        const Original& original,
        cudaStream_t stream);

} // namespace faiss_bits::dropin
