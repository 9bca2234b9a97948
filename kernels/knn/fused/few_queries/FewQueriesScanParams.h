#pragma once

#include <cstddef>

namespace faiss_bits {

/// Most queries of one launch.
constexpr int kMaxFewQueriesScan = 16;
/// Shared memory that the queries of one launch may take.
constexpr size_t kMaxFewQueriesScanBytes = 96 * 1024;

/// Queries that a launch is compiled for: 1, 4 or 16.
constexpr int fewQueriesScanInstance(int numQueries) {
    return numQueries <= 1 ? 1 : numQueries <= 4 ? 4 : 16;
}

/// Components that the lanes of a vector read at a time: those of 4 lanes, or
/// of 8, which read whole lines of 128 bytes.
constexpr int fewQueriesScanChunk(int d) {
    return d <= 16 ? 16 : 32;
}

/// Shared memory of a launch; with logarithms, as much again.
constexpr size_t fewQueriesScanBytes(int numQueries, int d, bool logs) {
    const size_t chunk = fewQueriesScanChunk(d);
    return fewQueriesScanInstance(numQueries) *
            ((d + chunk - 1) / chunk * chunk) * sizeof(float) * (logs ? 2 : 1);
}

} // namespace faiss_bits
