#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

namespace faiss_bits {

/// Numbers of one dimension as entries (device/Entry.cuh) in ascending order:
/// the number, and the vector that it is of. Equal numbers are in the order of
/// their vectors, NaN is behind all.
struct SortedLineParams {
    Metric metric = Metric::L2;        // or InnerProduct
    DataType type = DataType::Float32; // of the vectors
    const void* vectors = nullptr;     // [n]
    uint32_t n = 0;
    uint64_t* entries = nullptr; // [n]

    DataType queryType = DataType::Float32;
    const void* queries = nullptr; // [numQueries]
    int64_t numQueries = 0;
    uint32_t k = 0;
    int threads = 0;   // of a query: kLineWarp or kLineBlock
    uint32_t room = 0; // of a query's results in shared memory: lineRoom()

    float* outDistances = nullptr; // [numQueries, k]
    void* outIds = nullptr;        // [numQueries, k]
    bool ids64 = true;
};

constexpr int kLineWarp = 32;
constexpr int kLineBlock = 256;
constexpr int kMostLineK = 2048;

/// Entries in shared memory for the k nearest, and for as many again that are
/// as near as the k-th. A power of two.
constexpr uint32_t lineRoom(uint32_t k) {
    uint32_t room = 64;
    while (room < 2 * k) {
        room *= 2;
    }
    return room;
}

/// Enqueues the entries, in the order of the vectors. Bound by one read of the
/// vectors and the write.
void launchLineEntries(const SortedLineParams& params, cudaStream_t stream);

/// Enqueues the search of sorted entries. Bound by latency: for each query a
/// binary search, one for the split between the two sides, and the sort of the
/// results in shared memory; then by the write of the results.
void launchSortedLine(const SortedLineParams& params, cudaStream_t stream);

} // namespace faiss_bits
