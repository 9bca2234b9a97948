#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Workspace.h"
#include "kernels/metric_space/MetricGroups.h"
#include "kernels/range/RangeSink.h"

/// Exact searches of an index for metric spaces on the GPU; with
/// GroupBounds::None of all vectors, by brute force.
namespace faiss_bits::metric_space {

/// Who meets whom first.
enum class Mapping : uint8_t {
    /// The queries of a group together, in tiles of canonical distances: a
    /// group
    /// is read once for up to 64 of them.
    GroupMajor,
    /// Barrientos et al. 2012, IV: a block a query, a thread a vector. Ranges
    /// alone. Needs the columns of MetricGroups.
    QueryMajor,
};

/// How a search goes from group to group, where these have bounds
/// (Mapping::GroupMajor).
enum class GroupWay : uint8_t {
    Auto,  ///< what is expected to take less time
    Lists, ///< the queries of every group are listed, and meet it in tiles
    /// One kernel, of ranges in one stage: a warp takes a group and 32 queries.
    /// For d <= 16, and up to 32 pivots.
    Warps,
};

/// What a search takes.
struct MetricSearchProblem {
    MetricGroups groups;                   ///< what is searched in
    idx_t numQueries = 0;                  ///< rows of queries
    const float* queries = nullptr;        ///< [numQueries, d], on the device
    Mapping mapping = Mapping::GroupMajor; ///< changes no answer
    int multiprocessors = 132;             ///< of the device
    GroupWay way = GroupWay::Auto;         ///< changes no answer
    /// [groups.numIds, d] by their ids, on the device, where they lie so too:
    /// then results of few queries need no sort (GroupWay::Warps). Or nullptr.
    const float* vectors = nullptr;

    /// Which queries look at a group, where runFirstStage has found it: bit
    /// q % 32 of word q / 32 of the group. Ranges in GroupMajor alone, which
    /// then compute no distance to a reference and have no center in their
    /// results. Or nullptr: the search finds it itself.
    const uint32_t* groupBits = nullptr; ///< [numGroups, groupBitsStride]
    uint32_t groupBitsStride = 0;        ///< words from a group to the next
};

/// Words of groupBits that so many queries take.
inline uint32_t groupBitsWords(idx_t numQueries) {
    return uint32_t((numQueries + 31) / 32);
}

/// How searches of a problem go: made once from its shape.
struct MetricSearchPlan {
    idx_t rows = 0;       ///< queries at a time, at most
    idx_t capacity = 0;   ///< results at a time
    bool byWarps = false; ///< GroupWay::Warps, not lists
    bool byBits = false;  ///< of these, results by bits, not sorted
    size_t listsTemp = 0; ///< bytes that CUB takes for the lists of groups
    size_t sortTemp = 0;  ///< and for sorting
    size_t bytes = 0;     ///< of scratch
};

/// The plan whose scratch is about maxBytes, or one with more if it has to: 28
/// bytes for each vector, and 8 for each reference and group. k: of a search
/// for neighbours; 0: of ranges. Asks the device what sorting takes.
MetricSearchPlan planMetricSearch(
        const MetricSearchProblem& problem,
        idx_t k,
        size_t maxBytes);

/// Results of queries first to first + rows - 1, on the device, until the
/// callback returns.
struct MetricRangePart {
    idx_t first = 0;               ///< query
    idx_t rows = 0;                ///< queries
    const idx_t* limits = nullptr; ///< [rows + 1], from 0 on
    /// The same on the host, where they have come there; or nullptr.
    const idx_t* hostLimits = nullptr;
    const float* distances = nullptr; ///< [total]
    const idx_t* ids = nullptr;       ///< [total], ascending within a query
    idx_t total = 0;                  ///< results of all of them
    /// Results are in the room that was asked for, or nowhere if there was
    /// none.
    bool isInRoom = false;
};

/// Memory of the device for the results of a part, whose limits are known.
using MetricRoom = std::function<RangeRoom(const MetricRangePart&)>;

/// Hands all vectors with distance < radius to `take`, for some queries at a
/// time, in their order.
///
/// room     asked for each part with results that can be written to it at once
///          (plan.byBits); others, and all without it, lie in the scratch
/// Result   canonical distances, none that is NaN; the same bits whatever the
///          bounds, the mapping, the scratch and the device
/// Stream   waits for the device, for every part
/// Errors   Error naming a bad argument, and what `take` throws
/// Cost     distances to the references, and to the vectors of the groups that
///          are left (`counters`), tiles of 64 queries and 64 vectors; then
///          results are sorted. By bits, up to 64 MiB of them, a bit for every
///          query and vector is read twice in place of the sort
void runMetricRange(
        const MetricSearchPlan& plan,
        const MetricSearchProblem& problem,
        float radius,
        Workspace workspace,
        cudaStream_t stream,
        const std::function<void(const MetricRangePart&)>& take,
        MetricCounters* counters = nullptr,
        const MetricRoom& room = nullptr);

/// The plan of runFirstStage: likewise, of about maxBytes, or of 28 bytes for
/// each of 32 x numReferences where that is more.
MetricSearchPlan planFirstStage(
        const MetricSearchProblem& problem,
        size_t maxBytes);

/// The first of the two stages that a range search may be cut into: finds which
/// queries have to look at which groups. The second is runMetricRange with
/// groupBits, of the same groups or, on each of several devices, of some of
/// them.
///
/// Groups   their bounds and references alone; neither vectors, ids nor firsts
///          are read
/// Result   groupBits [numGroups, groupBitsStride], as many words of a group as
///          the queries take, others as they were; and to `take`, in parts as
///          of runMetricRange, the centers that are results. A center whose
///          referenceIds is negative is no result
/// Stream, errors as runMetricRange
/// Source   Barrientos et al. 2012, VII-A
void runFirstStage(
        const MetricSearchPlan& plan,
        const MetricSearchProblem& problem,
        float radius,
        uint32_t* groupBits,
        uint32_t groupBitsStride,
        Workspace workspace,
        cudaStream_t stream,
        const std::function<void(const MetricRangePart&)>& take,
        MetricCounters* counters = nullptr);

/// The k nearest of every query: by (distance, id), empty places (FLT_MAX, -1),
/// NaN never. First the vectors of the groups that seem nearest make a limit,
/// then it is a range search.
///
/// Shapes   outDistances and outIds [numQueries, k], on the device
/// Stream, errors, cost as runMetricRange; `interrupt` is called now and then
void runMetricKnn(
        const MetricSearchPlan& plan,
        const MetricSearchProblem& problem,
        idx_t k,
        float* outDistances,
        idx_t* outIds,
        Workspace workspace,
        cudaStream_t stream,
        const Interrupt& interrupt = nullptr,
        MetricCounters* counters = nullptr);

} // namespace faiss_bits::metric_space
