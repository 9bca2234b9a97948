#pragma once

#include "kernels/metric_space/gpu/SearchParams.h"

namespace faiss_bits::metric_space {

/// Two arrays each, for sorting: FoundPairs' own, and others as long.
struct SortArrays {
    uint64_t* keys[2];
    uint32_t* values[2]; // the first are the bits of the distances
    void* temp;
    size_t tempBytes;
};

/// Bytes of SortArrays::temp. Asks the device.
size_t foundSortTempBytes(idx_t capacity);

/// Sorted results of a range search, on the device.
struct SortedRange {
    idx_t* limits; // [rows + 1]
    float* distances;
    idx_t* ids;
};

/// Sorts `total` pairs by (query, id). limits is [rows + 1].
SortedRange sortRange(
        const FoundPairs& found,
        const SortArrays& arrays,
        idx_t total,
        uint32_t rows,
        idx_t* limits,
        cudaStream_t stream);

/// Sorts `total` pairs by (query, distance, id), and writes the first k of each
/// query; empty places are (FLT_MAX, -1). limits is [rows + 1], for a while.
void sortNearest(
        const FoundPairs& found,
        const SortArrays& arrays,
        idx_t total,
        uint32_t rows,
        idx_t k,
        idx_t* limits,
        float* outDistances,
        idx_t* outIds,
        cudaStream_t stream);

/// outLimits[q]: the k-th least distance of a query; infinity where there are
/// fewer.
void sortLimits(
        const FoundPairs& found,
        const SortArrays& arrays,
        idx_t total,
        uint32_t rows,
        idx_t k,
        idx_t* limits,
        float* outLimits,
        cudaStream_t stream);

} // namespace faiss_bits::metric_space
