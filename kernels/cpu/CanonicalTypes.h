#pragma once

#include "kernels/cpu/KernelTypes.h"

/// Canonical distances (kernels/canonical/Distance.h) on the CPU: what the host
/// code of certified searches hands to the kernels of an instruction set.
namespace faiss_bits::cpu {

/// Components of a query that is compared are whole groups of the slots.
constexpr int kCanonicalSlots = 8;

/// A query as float64, and what bounds and cosines need of it.
struct CanonicalQuery {
    /// [depth, whole groups of slots], zeros behind
    double* components = nullptr;
    double squares = 0;   ///< sum of the squares, canonical; NaN if q has one
    double absolutes = 0; ///< sum of the absolute values
    double rounding = 0;  ///< Int16Kernels::roundingOf; else 0
};

/// Some vectors whose canonical distances of one query are wanted.
template <class T>
struct RescoreList {
    CanonicalQuery query;
    const CandidateId<T>* ids = nullptr; ///< [count]
    idx_t count = 0;
    /// [count]; negated for similarities, float32 ones rounded to it
    T* keys = nullptr;
    /// [count] The vectors, in place of ids; not with vectorSquares.
    const T* const* rows = nullptr;
};

/// Lists that are worked off in this order, none of them empty.
template <class T>
struct RescoreJob {
    const RescoreList<T>* lists = nullptr;
    idx_t numLists = 0;
    RowView<T> vectors;
    /// Of all vectors, as sumSquares leaves them; may be null.
    const double* vectorSquares = nullptr;
    int depth = 0;
    double power = 2; ///< KernelMetric::Power
};

/// Most queries that meet a vector at a time in PairJob.
constexpr int kMostPairQueries = 4;

/// Some queries and the first vectors of a view, all of which they meet.
template <class T>
struct PairJob {
    RowView<T> queries;
    idx_t firstQuery = 0, numQueries = 0;
    RowView<T> vectors;
    idx_t numVectors = 0;
    /// Of the vectors, as sumSquares leaves them; may be null.
    const double* vectorSquares = nullptr;
    /// [numQueries, keyStride]; as those of RescoreList
    T* keys = nullptr;
    idx_t keyStride = 0; ///< >= numVectors
    int depth = 0;
    /// Scratch: [kMostPairQueries][depth, whole groups of slots]
    double* widened = nullptr;
};

template <class T>
struct CanonicalKernels {
    /// Fills what `query` has behind `components`. These two are null for
    /// metrics that are always canonical.
    void (*prepareQuery)(const T* row, int depth, CanonicalQuery& query) =
            nullptr;
    void (*rescore)(const RescoreJob<T>&) = nullptr;
    /// The same of all pairs; null but for L2 and inner product of float32.
    void (*pairDistances)(const PairJob<T>&) = nullptr;
    /// Canonical sums of squares of some vectors, which make `rescore` faster;
    /// null where they do not.
    void (*sumSquares)(
            const RowView<T>& vectors,
            idx_t first,
            idx_t count,
            int depth,
            double* to) = nullptr;
    /// As MetricKernels::runTiles, of panels packed as for Squares; a depth
    /// block is the whole depth.
    void (*runTiles)(const TileJob<T>&) = nullptr;
    /// True if a pair by runTiles is much less work than one by `rescore`:
    /// products by the widest vectors, for which packed components are widened
    /// once. Where conversions are slow, as on Intel's processors.
    bool prefersAllPairs = false;
};

/// The kernels compiled for a target; those of L2 and Squares are the same.
template <class T, KernelMetric kMetric>
CanonicalKernels<T> canonicalKernelsFor(int64_t target);
template <class T>
CanonicalKernels<T> canonicalKernelsFor(KernelMetric metric, int64_t target);

} // namespace faiss_bits::cpu
