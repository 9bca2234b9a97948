#pragma once

#include "kernels/metric_space/MetricSpace.h"

namespace faiss_bits::metric_space {

/// Makes the list on the CPU, with `threads` threads (0: as many as OpenMP
/// would use), which decide no bit of it.
///
/// Cost     n^2 / (2 (bucketSize + 1)) distances
/// Errors   Error naming a bad argument, and what `interrupt` throws
ListOfClusters buildListOfClusters(
        const MetricVectors& vectors,
        const ListOfClustersOptions& options,
        int threads = 0,
        const Interrupt& interrupt = nullptr);

/// The same of pivots.
///
/// Cost     n times (the pivots + kMaxDistanceSweeps) distances
PivotTable buildPivotTable(
        const MetricVectors& vectors,
        const PivotOptions& options,
        int threads = 0,
        const Interrupt& interrupt = nullptr);

/// For a list or table that comes from a file: throws Error unless its ids are
/// those of n vectors, each once, and its arrays have sizes that fit.
void checkListOfClusters(const ListOfClusters& list, idx_t n);
void checkPivotTable(const PivotTable& table, idx_t n);

/// Distances of a table's vectors to its pivots: what a file leaves out. After
/// what `interrupt` throws the table has some of them.
void fillPivotDistances(
        const MetricVectors& vectors,
        PivotTable& table,
        int threads = 0,
        const Interrupt& interrupt = nullptr);

/// Ids of the vectors without NaN and infinities to `finite`, of the others to
/// `rest`; both ascending.
void splitFinite(
        const MetricVectors& vectors,
        std::vector<idx_t>& finite,
        std::vector<idx_t>& rest);

} // namespace faiss_bits::metric_space
