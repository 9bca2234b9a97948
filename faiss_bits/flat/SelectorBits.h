#pragma once

#include <functional>
#include <memory>

#include <cuda_runtime_api.h>

#include "faiss_bits/flat/SelectorTree.h"

/// Selectors as bits on the device. Not part of the API.
namespace faiss_bits::gpu::detail {

/// Where selectors are evaluated, on the current device.
struct SelectorPlace {
    int device = 0;
    cudaStream_t stream = nullptr;
    /// Memory of the device, until the pointer is gone. It is let go of in the
    /// reverse order, and while work in the stream may still use it.
    std::function<std::shared_ptr<void>(size_t bytes)> allocate;
};

/// Writes bits [filterWords(n)] (kernels/knn/filter/FilterBits.h) of what is
/// selected.
///
/// Stream  enqueues; host memory of the selector has been read when it returns.
///         It waits for the stream where that memory is pinned or managed
/// Memory  the bits once more for every second operand of and, or, xor; 64 MiB
///         for lists of ids on the host
void runSelectorBits(
        const SelectorTree& tree,
        idx_t n,
        uint32_t* bits,
        const SelectorPlace& place);

/// The selected ids, ascending, then -1: [capacity].
void runSelectorIds(
        const uint32_t* bits,
        idx_t n,
        int32_t* ids,
        idx_t capacity,
        const SelectorPlace& place);

} // namespace faiss_bits::gpu::detail
