#pragma once

#include "kernels/common/Types.h"

namespace faiss_bits {

/// What fewQueriesKernel gets by value.
struct FewQueriesParams {
    const void* vectors = nullptr; // [numVectors, d], row-major
    const void* queries = nullptr; // [numQueries, d], row-major
    idx_t numVectors = 0;
    int numQueries = 0; // at most the kernel's Queries
    int d = 0;
    float* distances = nullptr; // [numQueries, distanceStride]
    idx_t distanceStride = 0;

    // What the filtered kernels read; one of the two is set. The distances of
    // what is left out are NaN, and its components are not read.
    const uint8_t* allowed = nullptr; // bit i % 8 of byte i / 8: of vector i
    const int32_t* ids = nullptr; // [numVectors] columns are these; -1: none
};

/// Most queries of one launch.
constexpr int kMaxFewQueries = 16;
/// Shared memory that the queries of one launch may take.
constexpr size_t kMaxFewQueriesBytes = 96 * 1024;

/// Queries that a launch is compiled for: 1, 4 or 16.
constexpr int fewQueriesInstance(int numQueries) {
    return numQueries <= 1 ? 1 : numQueries <= 4 ? 4 : 16;
}

/// Lanes that share a vector: 4 components a lane until a warp is full.
constexpr int fewQueriesLanes(int d) {
    return d <= 16 ? 4 : d <= 32 ? 8 : d <= 64 ? 16 : 32;
}

constexpr size_t fewQueriesSharedBytes(int numQueries, int d) {
    const size_t chunk = size_t(fewQueriesLanes(d)) * 4;
    return fewQueriesInstance(numQueries) * ((d + chunk - 1) / chunk * chunk) *
            sizeof(float);
}

} // namespace faiss_bits
