#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Types.h"

namespace faiss_bits {

/// Kinds of numbers that are in one direction, and all numbers that have one:
/// what a query of zero meets. Infinities and NaN are of none.
enum LineKind : uint32_t { kPositive, kZero, kNegative, kFinite };
constexpr int kLineKinds = 4;

/// Vectors of a chunk are a multiple of it.
constexpr int kLineStep = 1024;

struct LineParams {
    DataType type = DataType::Float32; // of vectors and queries
    const void* vectors = nullptr;     // [n]
    int64_t n = 0;
    const uint32_t* allowedBits = nullptr; // nullptr: all are allowed
    const void* queries = nullptr;         // [numQueries]
    int64_t numQueries = 0;
    int64_t k = 0;

    int64_t listed = 0; // entries of a list
    int64_t chunkVectors = 0;
    uint32_t chunks = 0;
    uint32_t* counts = nullptr; // [chunks, kLineKinds] of allowed vectors
    /// [kLineKinds, listed]: the first vectors of a kind, and of those that
    /// there are, the number.
    uint32_t* lists = nullptr;
    uint32_t* totals = nullptr; // [kLineKinds]

    float* outDistances = nullptr; // [numQueries, k]
    void* outIds = nullptr;        // [numQueries, k]
    bool ids64 = true;
};

/// Enqueues three kernels: counts, lists, results. Bound by: two reads of the
/// vectors and the write of the results; mostly by launches.
void launchLine(const LineParams& params, cudaStream_t stream);

} // namespace faiss_bits
