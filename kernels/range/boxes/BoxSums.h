#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

/// CUB's sums and sorts, for searches through boxes. Not part of the API.
namespace faiss_bits {

/// Bytes that runBoxSums takes for so many counts. Asks the device.
size_t boxSumsBytes(size_t count);

/// offsets[i]: the sum of the counts before i.
void runBoxSums(
        const uint32_t* counts,
        int64_t* offsets,
        size_t count,
        void* temp,
        size_t tempBytes,
        cudaStream_t stream);

/// Bytes that sortBoxQueries takes. Asks the device.
size_t boxSortBytes(size_t rows);

/// The numbers [rows] in the order of their keys of kBoxQueryBits: one of the
/// arrays given, both of which are overwritten.
const uint32_t* sortBoxQueries(
        uint32_t* const (&keys)[2],
        uint32_t* const (&numbers)[2],
        size_t rows,
        void* temp,
        size_t tempBytes,
        cudaStream_t stream);

} // namespace faiss_bits
