#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace faiss_bits {

/// Temporary bytes that are enough for radixSort of `items` keys, on every
/// device. CUB's own query asks the device, which a size query must not.
size_t radixSortTempBytes(size_t items);

/// Sorts keys by their bits [beginBit, endBit), ascending and stable, by CUB.
/// Returns which of the two arrays holds the result; both are overwritten.
/// Enqueues on `stream`. Throws Error if CUB fails or wants more than
/// `tempBytes`.
uint64_t* radixSort(
        uint64_t* keys,  // [items]
        uint64_t* other, // [items]
        uint32_t items,
        int beginBit,
        int endBit,
        void* temp,
        size_t tempBytes,
        cudaStream_t stream);

} // namespace faiss_bits
