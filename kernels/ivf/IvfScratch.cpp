#include "kernels/ivf/IvfScratch.h"

#include <algorithm>

namespace faiss_bits {

IvfScratch::IvfScratch(
        const IvfKnnProblem& p,
        const IvfKnnPlan& plan,
        WorkspaceSlices& slices,
        bool chooses) {
    const size_t rows = size_t(plan.rowsAtATime);
    params.nearProbes = uint32_t(plan.nearProbes);
    params.stride = plan.stride;
    params.room = uint32_t(plan.room);
    params.isLower = plan.byEstimates() && plan.room == 0;
    params.boundVectors = uint32_t(plan.boundVectors);
    params.sampleGroups = uint32_t(plan.sampleVectors / kIvfGroup);
    params.columnStep = plan.byEstimates() ? uint32_t(kIvfColumnStep) : 1;
    params.columns = slices.take<uint32_t>(rows * (params.nearProbes + 1));
    // A key and eight bytes for what is found; when places are taken from it,
    // candidates stand there by group.
    const size_t room = rows * size_t(plan.room);
    const size_t candidates = rows * size_t(plan.candidates);
    static_assert(sizeof(IvfCandidate) == 2 * sizeof(float));
    params.distances = slices.take<float>(
            std::max({rows * size_t(plan.stride), 3 * room, 2 * candidates}));
    if (isScalar(p.lists.coding)) {
        params.starts = slices.take<float>(size_t(p.lists.d));
        params.steps = slices.take<float>(size_t(p.lists.d));
    }
    params.foundKeys = params.distances;
    params.found = params.distances
            ? reinterpret_cast<uint64_t*>(params.distances + room)
            : nullptr;
    if (plan.listMajor) {
        const size_t numLists = size_t(p.lists.numLists);
        const size_t pairs = rows * size_t(p.nprobe);
        params.counts = slices.take<uint32_t>(numLists + 1);
        params.firstPairs = slices.take<uint32_t>(numLists);
        params.firstTiles = slices.take<uint32_t>(numLists + 1);
        params.pairRanks = slices.take<uint32_t>(pairs);
        params.pairRows = slices.take<uint32_t>(pairs);
        params.pairColumns = slices.take<uint32_t>(pairs);
    }
    if (plan.byEstimates()) {
        params.numFound = slices.take<uint32_t>(2 * rows);
        params.widths = params.numFound ? params.numFound + rows : nullptr;
        if (chooses) {
            lowerBounds = slices.take<float>(candidates + rows);
            chosen = slices.take<int32_t>(candidates + rows);
        }
        rescored.candidates = plan.candidates;
        rescored.distances = slices.take<float>(candidates);
        rescored.places = slices.take<uint64_t>(candidates);
        rescored.mostGroups =
                uint32_t(p.lists.numVectors / kIvfGroup + p.lists.numLists);
        rescored.firstGroups =
                slices.take<uint32_t>(size_t(p.lists.numLists) + 1);
        // Side by side, to be cleared together (IvfBegin).
        rescored.groupCounts =
                slices.take<uint32_t>(rescored.mostGroups + kIvfPlaced);
        rescored.numPlaced = rescored.groupCounts
                ? rescored.groupCounts + rescored.mostGroups
                : nullptr;
        rescored.groupBegins = slices.take<uint32_t>(rescored.mostGroups);
        rescored.ranks = slices.take<uint32_t>(candidates);
        rescored.groups = slices.take<IvfGroup>(rescored.mostGroups);
        rescored.grouped = reinterpret_cast<IvfCandidate*>(params.distances);
        rescored.arrangedDims = (p.lists.d + kIvfArrangedStep - 1) /
                kIvfArrangedStep * kIvfArrangedStep;
        rescored.arranged =
                slices.take<float>(rows * size_t(rescored.arrangedDims));
    }
    keys = slices.take<float>(rows * (size_t(p.k) + 1));
    places = slices.take<int32_t>(rows * (size_t(p.k) + 1));
    for (const SelectPlan* used :
         {&plan.selection,
          &plan.lastSelection,
          &plan.limits,
          &plan.lastLimits,
          &plan.choice,
          &plan.lastChoice}) {
        select.bytes = std::max(select.bytes, used->workspaceBytes());
    }
    select.data = slices.take<uint8_t>(select.bytes);
}

IvfAgainScratch::IvfAgainScratch(
        const IvfKnnProblem& p,
        const IvfKnnPlan& plan,
        WorkspaceSlices& slices) {
    if (plan.byEstimates()) {
        rows = slices.take<uint32_t>(size_t(p.numQueries));
        count = slices.take<uint32_t>(1);
    }
}

IvfSomeRows::IvfSomeRows(
        const IvfKnnProblem& p,
        idx_t count,
        WorkspaceSlices& slices) {
    params.someQueries = slices.take<float>(size_t(count) * p.lists.d);
    params.someProbes = slices.take<idx_t>(size_t(count) * p.nprobe);
    params.someDistances = slices.take<float>(size_t(count) * p.k);
    params.someIds = slices.take<idx_t>(size_t(count) * p.k);
    limits.keys = slices.take<float>(size_t(count));
    limits.places = slices.take<int32_t>(size_t(count));
}

} // namespace faiss_bits
