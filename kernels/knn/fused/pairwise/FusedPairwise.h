#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/knn/ErrorBound.h"
#include "kernels/knn/RowFacts.h"
#include "kernels/knn/fused/PassedLists.h"

namespace faiss_bits {

/// Queries against vectors, component by component, for the pairs within the
/// queries' limits.
struct FusedPairwiseProblem {
    Metric metric = Metric::L2; ///< any
    float metricArg = 0;        ///< p of Lp: finite, above 0
    int d = 0;

    const void* vectors = nullptr; ///< [n, d], or [d, n] if column-major
    DataType vectorType = DataType::Float32;
    bool vectorsRowMajor = true;
    idx_t numVectors = 0; ///< n

    const void* queries = nullptr; ///< [numQueries, d] or [d, numQueries]
    DataType queryType = DataType::Float32;
    bool queriesRowMajor = true;
    idx_t numQueries = 0;

    /// RowFacts of the metric (rowFactsOf), on the device; not read where that
    /// is None.
    const float* vectorFacts = nullptr; ///< [n]
    const float* queryFacts = nullptr;  ///< [numQueries]

    /// Bit i % 32 of word i / 32: vector i may pass, [(n + 31) / 32]; bits from
    /// n on may be anything. nullptr: all.
    const uint32_t* allowedBits = nullptr;

    PassedLists passed; ///< of numQueries rows

    DeviceTraits device; ///< never changes what has to pass
};

/// How far the keys that are compared with the limits may be from the
/// canonical ones; of Jensen-Shannon with the sums of rows that errorBound
/// (ErrorBound.h) describes.
ErrorBound fusedPairwiseBound(
        Metric metric,
        float metricArg,
        int d,
        double vectorSum = 0,
        double querySum = 0);

/// Appends to every query's list the vectors whose key is within its limit.
///
/// Result   a key is a distance, or a similarity with its sign turned, in fp32
///          and within fusedPairwiseBound of the canonical one. In the list is
///          every allowed vector whose key is not above the limit, once, in any
///          order; and no other, but for some whose key is above it by less
///          than 2^-17 of it (metrics with a division, and Jensen-Shannon).
///          Keys that are NaN pass, if the canonical one is not known to be
///          NaN. Which of two vectors with keys within the bound passes may
///          depend on the device and the shape
/// Limits   d >= 1, n and numQueries below 2^31; limits may be infinite
/// Stream   enqueues one launch (a few where a grid has no room for all) on
///          `stream` and never waits
/// Memory   none
/// Errors   throws Error on a bad argument (named) or a failed launch
/// Cost     L1, Linf, L2: two operations a component and pair, and one a pair;
///          inner product: one; up to 16 queries: one read of the vectors. A
///          vector that passes costs some hundred operations
/// Source   Hanak 2023, 4.2
void runFusedPairwise(const FusedPairwiseProblem& problem, cudaStream_t stream);

} // namespace faiss_bits
