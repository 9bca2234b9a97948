#pragma once

#include "kernels/metric_space/MetricSearch.h"
#include "kernels/metric_space/gpu/FoundBits.h"
#include "kernels/metric_space/gpu/FoundSort.h"

namespace faiss_bits::metric_space {

/// Rows of the matrix begin on 32 bytes.
constexpr idx_t kRowStep = 8;

inline idx_t strideOf(const MetricGroups& groups) {
    return (groups.numReferences + kRowStep - 1) / kRowStep * kRowStep;
}

/// Whether groups have lists of queries.
inline bool usesLists(const MetricSearchProblem& p) {
    return p.mapping == Mapping::GroupMajor &&
            p.groups.kind != GroupBounds::None;
}

inline int bitsFor(idx_t count) {
    int bits = 0;
    while ((idx_t(1) << bits) < count) {
        ++bits;
    }
    return bits;
}

/// Of a search that may be cut into two stages.
enum class SearchStage : uint8_t {
    Whole,
    First,  ///< references to groupBits
    Second, ///< groupBits to results
};

inline SearchStage stageOf(const MetricSearchProblem& p) {
    return p.groupBits ? SearchStage::Second : SearchStage::Whole;
}

/// What a search takes, in the order in which it is taken.
struct SearchScratch {
    SearchParams params;
    SortArrays sort;
    idx_t* limits = nullptr; // of the sorted results
    // Of results by bits. The counts, the limits, which the host reads with
    // them, and the bits lie in one piece that is cleared.
    FoundBits bits;
    size_t clearedBytes = 0;
    float* bitDistances = nullptr; // [capacity]
    idx_t* bitIds = nullptr;       // [capacity]
    float* keys = nullptr;         // of groups that may be seeds

    SearchScratch(
            const MetricSearchProblem& p,
            const MetricSearchPlan& plan,
            bool isKnn,
            SearchStage stage,
            WorkspaceSlices& slices) {
        const MetricGroups& groups = p.groups;
        const size_t rows = size_t(plan.rows);
        const size_t numGroups = groups.numGroups;
        params.groups = groups;
        params.found.capacity = plan.capacity;
        params.found.idBits = bitsFor(groups.numIds);
        if (plan.byBits) {
            takeBits(groups, plan, slices);
            return;
        }
        params.found.count = slices.take<unsigned long long>(3);
        params.numDistances = params.found.count + 1;
        params.limits = slices.take<float>(rows);
        params.reaches = slices.take<double>(rows);
        limits = slices.take<idx_t>(rows + 1);
        for (int i = 0; i < 2; ++i) {
            sort.keys[i] = slices.take<uint64_t>(plan.capacity);
            sort.values[i] = slices.take<uint32_t>(plan.capacity);
        }
        sort.tempBytes = plan.sortTemp;
        sort.temp = slices.take<uint8_t>(plan.sortTemp);
        params.found.keys = sort.keys[0];
        params.found.distances = reinterpret_cast<float*>(sort.values[0]);
        if (!usesLists(p) || plan.byWarps) {
            return;
        }
        if (stage != SearchStage::Second) {
            params.stride = strideOf(groups);
            params.toReferences = slices.take<float>(rows * params.stride);
            if (groups.kind == GroupBounds::Pivots) {
                const size_t count = rows * groups.numReferences;
                params.pivotLeasts = slices.take<double>(count);
                params.pivotMosts = slices.take<double>(count);
                keys = slices.take<float>(isKnn ? rows * groups.numBounded : 0);
            } else {
                params.stops = slices.take<uint32_t>(rows);
            }
        }
        params.bits = slices.take<uint32_t>(numGroups * ((rows + 31) / 32));
        if (stage == SearchStage::First) {
            return;
        }
        params.listFirsts = slices.take<uint32_t>(numGroups + 1);
        params.tileFirsts = slices.take<uint32_t>(numGroups + 1);
        params.listedPairs = slices.take<unsigned long long>(1);
        params.lists = slices.take<uint32_t>(numGroups * rows);
        params.tiles = slices.take<uint2>(mostTiles(groups, rows));
        params.tempBytes = plan.listsTemp;
        params.temp = slices.take<uint8_t>(plan.listsTemp);
    }

   private:
    void takeBits(
            const MetricGroups& groups,
            const MetricSearchPlan& plan,
            WorkspaceSlices& slices) {
        const size_t rows = size_t(plan.rows);
        bits.rows = uint32_t(rows);
        bits.items = bitItems(groups.numIds);
        const size_t items = rows * bits.items;
        const size_t report = (3 + rows + 1 + 1) / 2 * 2; // then 16 bytes
        const size_t bitBytes = items * kItemWords * sizeof(uint32_t);
        clearedBytes = report * sizeof(unsigned long long) + bitBytes;
        params.found.count = slices.take<unsigned long long>(
                clearedBytes / sizeof(unsigned long long));
        params.numDistances = params.found.count + 1;
        limits = reinterpret_cast<idx_t*>(params.found.count + 3);
        params.found.bits =
                reinterpret_cast<uint32_t*>(params.found.count + report);
        params.found.bitWords = bits.items * kItemWords;
        bits.bits = params.found.bits;
        bits.counts = slices.take<uint32_t>(items);
        bits.places = slices.take<uint32_t>(items);
        bitDistances = slices.take<float>(plan.capacity);
        bitIds = slices.take<idx_t>(plan.capacity);
    }

    static size_t mostTiles(const MetricGroups& groups, size_t rows) {
        const size_t queries = scanQueries(groups.metric);
        const size_t vectors = scanVectors(groups.metric);
        // Every group has at most one tile that is not full each way.
        return (rows + queries - 1) / queries *
                (size_t(groups.n) / vectors + groups.numGroups);
    }
};

} // namespace faiss_bits::metric_space
