#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/common/Types.h"
#include "kernels/cpu/FusedPlan.h"

/// Exact search on the CPU, fused: distances are selected from while they are
/// still in registers or in cache. No FAISS, no CUDA and no SIMD header here.
namespace faiss_bits {

/// What the searches of this family share: the vectors, the queries, and how.
template <class T> // float or double
struct FusedProblem {
    FusedMetric metric = FusedMetric::L2;
    T metricArg = 2; ///< p of Lp, > 0; not read for other metrics

    idx_t numQueries = 0;
    idx_t numVectors = 0; ///< n: references searched, after vectorIds
    int d = 0;

    const T* queries = nullptr; ///< row-major, rows queryStride apart
    idx_t queryStride = 0;      ///< elements, >= d; 0: d
    /// Rows of `queries` to search for, [numQueries], any order, repeats
    /// allowed. nullptr: rows 0 .. numQueries - 1.
    const idx_t* queryIds = nullptr;

    const T* vectors = nullptr; ///< row-major, rows vectorStride apart
    idx_t vectorStride = 0;     ///< elements, >= d; 0: d
    /// Rows of `vectors` to search in, [numVectors], any order. Results name
    /// these rows. nullptr: rows 0 .. numVectors - 1.
    const idx_t* vectorIds = nullptr;

    /// 0: as many as OpenMP would use (omp_get_max_threads). Never changes the
    /// result.
    int threads = 0;

    FusedChoice choice; ///< forced variant, blocking and instruction set

    /// Called now and then on the calling thread, never inside the parallel
    /// loops; what it throws ends the search, with the outputs undefined.
    std::function<void()> interrupt;
};

/// k nearest of every query.
template <class T>
struct FusedKnnProblem : FusedProblem<T> {
    idx_t k = 0;
    T* outDistances = nullptr; ///< [numQueries, k]
    idx_t* outIds = nullptr;   ///< [numQueries, k], -1 = none
};

/// All vectors nearer than a radius, query after query.
template <class T>
struct FusedRangeResult {
    std::vector<idx_t>
            limits; ///< [numQueries + 1]; query i: limits[i] .. limits[i + 1]
    std::vector<T> distances;
    std::vector<idx_t> ids; ///< ascending within a query
};

/// Finds the k nearest vectors of every query, exactly.
///
/// Metric   L2 is squared; InnerProduct and Cosine (of vectors of any length;
///          a zero vector has cosine 0 with all) are similarities, largest
///          first; L1, Linf and Lp (sum of |difference|^p, without the root, as
///          FAISS) are smallest first
/// Result   best first; equal distances: lower id first; a vector at NaN is no
///          result; fewer than k: the rest is (+max, -1), and (-max, -1) for
///          similarities, max the largest finite T
/// Arith.   products and sums in T. L2 is |q|^2 - 2<q, x> + |x|^2, never below
///          zero, or sum((q - x)^2) where queries are few
///          (FusedVariant::Direct); the former is NaN (no result), the latter
///          infinity, where |x|^2 leaves the range of T. Lengths for Cosine:
///          their squares must not leave the range of T
/// Limits   k >= 1, below, at or above n; d >= 1; numVectors < 2^31
/// Threads  OpenMP over blocks of queries; over vectors, with merged results,
///          where queries are few. Every loop asks for all `threads`, so that
///          none is ended and started again. Safe to call from several threads
/// Memory   planFusedKnn says. Queries are worked off in batches, or in a block
///          for each thread, that keep the selections below 256 MB, unless one
///          query alone needs more (8 bytes a candidate, 16 for double; up to
///          2 k of them, at most n). Packed blocks: a quarter of the last
///          cache, half a second-level cache a thread
/// Errors   throws Error that names a bad argument and its value, before
///          anything is written
/// Cost     2 q n d operations; one read of the vectors a block of queries
/// Source   Yu et al. 2015 (GSKNN), algorithm 2.2 and section 2.6; for the
///          buffered variant, which it does not have, docs/algorithms.md
template <class T>
void runFusedKnn(const FusedKnnProblem<T>& problem);

/// All vectors with distance < radius (similarity > radius), as FAISS's
/// range_search. Arithmetic, threads and errors as above.
template <class T>
FusedRangeResult<T> runFusedRange(const FusedProblem<T>& problem, T radius);

/// What runFusedKnn would do: throws what it throws for a bad shape.
template <class T>
FusedPlan planFusedKnn(const FusedKnnProblem<T>& problem);

} // namespace faiss_bits
