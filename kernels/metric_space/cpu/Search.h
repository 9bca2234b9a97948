#pragma once

#include "kernels/cpu/Range.h"
#include "kernels/metric_space/MetricSpace.h"

/// Searches on the CPU: queries go to threads in turn, each is one thread's
/// alone, as the "local" method of Barrientos et al. 2012, V. With one thread
/// it is the paper's sequential search.
///
/// Result   that of brute force by canonical distances. Ranges: distance <
///          radius, by ascending id. Neighbours: by (distance, id), empty
///          places (FLT_MAX, -1). NaN is never returned
/// Errors   Error naming a bad argument, and what `interrupt` throws
/// Cost     MetricCounters; and for a PivotTable its table, read for each query
namespace faiss_bits::metric_space {

struct CpuSearch {
    MetricVectors vectors;
    /// The vectors of ListOfClusters::members or of PivotTable::order once
    /// more, in that order (orderedRows): those that are looked at together
    /// then lie side by side. nullptr: they are read where they are.
    const float* ordered = nullptr;
    idx_t numQueries = 0;
    const float* queries = nullptr; ///< [numQueries, d]
    /// 0: as many as OpenMP would use. Decides no bit of the result.
    int threads = 0;
    MetricCounters* counters = nullptr; ///< added to; may be null
    Interrupt interrupt;
};

/// Rows `ids` of the vectors, one after the other.
std::vector<float> orderedRows(
        const MetricVectors& vectors,
        const std::vector<idx_t>& ids);

/// Without an index: what the others are compared with.
cpu::RangeResult<float> rangeSearch(const CpuSearch& search, float radius);
cpu::RangeResult<float> rangeSearch(
        const CpuSearch& search,
        const ListOfClusters& list,
        float radius);
cpu::RangeResult<float> rangeSearch(
        const CpuSearch& search,
        const PivotTable& table,
        float radius);

/// outDistances and outIds are [numQueries, k].
void knnSearch(
        const CpuSearch& search,
        const ListOfClusters& list,
        idx_t k,
        float* outDistances,
        idx_t* outIds);
void knnSearch(
        const CpuSearch& search,
        const PivotTable& table,
        idx_t k,
        float* outDistances,
        idx_t* outIds);

} // namespace faiss_bits::metric_space
