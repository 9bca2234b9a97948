#pragma once

#include "kernels/cpu/Plan.h"
#include "kernels/cpu/Problem.h"

/// Exact search on the CPU, fused: distances are selected from while they are
/// still in registers or in cache. No FAISS, no CUDA and no SIMD header here.
namespace faiss_bits::cpu {

/// k nearest of every query.
template <class T>
struct KnnProblem : Problem<T> {
    idx_t k = 0;               ///< neighbours of a query, 1 or more
    T* outDistances = nullptr; ///< [numQueries, k]
    idx_t* outIds = nullptr;   ///< [numQueries, k], -1 = none
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
/// Mode     Certified (the default): distances are canonical
///          (kernels/canonical/Distance.h), in float64 and rounded once to T,
///          and so is the order: the same bits for every target, variant,
///          batch and number of threads. docs/bounds_cpu.md has the proof and
///          what it assumes of the C library's pow. Plain: as below
/// Arith.   of candidates, and of Plain: products and sums in T. L2 is
///          |q|^2 - 2<q, x> + |x|^2, never below zero, or sum((q - x)^2)
///          where queries are few (Variant::Direct); the former is NaN (no
///          result), the latter infinity, where |x|^2 leaves the range of T.
///          Lengths for Cosine: their squares must not leave the range of T
/// Limits   k >= 1, below, at or above n; d >= 1; numVectors < 2^31
/// Threads  OpenMP over blocks of queries; over vectors, with merged results,
///          where queries are few. Every loop asks for all `threads`, so that
///          none is ended and started again. Safe to call from several threads
/// Memory   planKnn says. Queries are worked off in batches, or in a block
///          for each thread, that keep the selections below 256 MB, unless one
///          query alone needs more (8 bytes a candidate, 16 for double; up to
///          2 k of them, at most n). Packed blocks: a quarter of the last
///          cache, half a second-level cache a thread
/// Errors   throws Error that names a bad argument and its value, before
///          anything is written
/// Cost     2 q n d operations; one read of the vectors a block of queries.
///          Certified: k d float64 operations a query more; where candidates
///          prove nothing (many equal distances, overflow), q n d of them
/// Source   Yu et al. 2015 (GSKNN), algorithm 2.2 and section 2.6; for the
///          buffered variant, which it does not have,
///          docs/algorithms_indexes.md
template <class T>
void runKnn(const KnnProblem<T>& problem);

/// What runKnn would do: throws what it throws for a bad shape.
template <class T>
Plan planKnn(const KnnProblem<T>& problem);

} // namespace faiss_bits::cpu
