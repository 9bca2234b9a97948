#pragma once

#include "kernels/ivf/IvfBoundedScans.h"
#include "kernels/ivf/IvfFilterBits.h"
#include "kernels/ivf/IvfFloors.h"
#include "kernels/ivf/IvfScratch.h"

/// What a direct search has in scratch.
namespace faiss_bits {

/// Whether a search of queries that share lists writes estimates of keys, of
/// which the finish makes keys.
inline bool hasEstimates(const IvfDirectPlan& plan, const IvfKnnProblem& p) {
    // The finish makes keys of them, a selection would not.
    return plan.shared &&
            (plan.byTables ||
             (p.k <= kMostFinishedK && hasIvfProductScan(p.lists, p.device)));
}

/// The same of queries by themselves, in float32.
inline bool hasCodeFloors(const IvfDirectPlan& plan, const IvfKnnProblem& p) {
    return !plan.shared &&
            (plan.byTables ||
             hasIvfCodeFloors(p.lists, p.numQueries, p.mostVectors, p.k));
}

/// Of queries that share lists the bits of a test are made before the scan.
inline bool makesBits(const IvfDirectPlan& plan, const IvfKnnProblem& p) {
    return plan.shared && p.lists.idTest.isThere();
}

/// Of the matrix of distances of a search that selects.
inline SelectProblem directSelection(
        const IvfKnnProblem& p,
        const IvfDirectPlan& plan) {
    IvfKnnPlan distances;
    distances.stride = plan.stride;
    return ivfSelection(p, distances, p.numQueries);
}

/// Of all queries of a problem, which may be a part of those of a search. What
/// does not depend on the queries lies first, so that all parts have it in one
/// place.
struct DirectScratch {
    IvfDirectParams params; // what lies in scratch, and its sizes
    // Of a test of ids: its bits; of no query.
    uint32_t* bits = nullptr;
    uint32_t* firstWords = nullptr;
    uint32_t wordsOfList = 0;
    // Of the selection of distances.
    float* keys = nullptr;
    int32_t* places = nullptr;
    Workspace select;

    DirectScratch(
            const IvfKnnProblem& p,
            const IvfDirectPlan& plan,
            WorkspaceSlices& slices) {
        IvfParams& search = params.search;
        const size_t rows = size_t(p.numQueries);
        const size_t numLists = size_t(p.lists.numLists);
        const size_t pairs = rows * size_t(p.nprobe);
        search.stride = plan.stride;
        const bool sharesTables = plan.shared && plan.byTables;
        if (sharesTables) {
            params.turnedCodebook = slices.take<float>(
                    size_t(p.lists.d) << p.lists.decoding.partBits);
            params.turnedSquares =
                    slices.take<float>(size_t(p.lists.decoding.numParts));
        }
        if (plan.byTerms && p.metric == Metric::L2) {
            params.listTerms = slices.take<float>(
                    size_t(ivfListsOfTerms(p.lists)) * ivfTermsOf(p.lists));
        }
        if (makesBits(plan, p)) {
            IvfLists lists = p.lists;
            wordsOfList = ivfWordsOfList(lists, ivfLongestList(p));
            if (wordsOfList == 0) {
                firstWords = slices.take<uint32_t>(numLists + 1);
            }
            lists.wordsOfList = wordsOfList;
            bits = slices.take<uint32_t>(size_t(ivfFilterWords(lists)));
        }
        search.columns = slices.take<uint32_t>(pairs + rows);
        const size_t columns = rows * size_t(plan.stride);
        if (plan.selects) {
            search.distances = slices.take<float>(columns);
            keys = slices.take<float>(rows * (size_t(p.k) + 1));
            places = slices.take<int32_t>(rows * (size_t(p.k) + 1));
            select.bytes = plan.selection.workspaceBytes();
            select.data = slices.take<uint8_t>(select.bytes);
        } else {
            params.keys = slices.take<uint32_t>(columns);
            params.least = slices.take<uint32_t>(columns / kIvfGroup);
        }
        if (hasCodeFloors(plan, p)) {
            params.bounds = slices.take<uint32_t>(2 * rows);
            if (isScalar(p.lists.coding)) {
                search.starts = slices.take<float>(size_t(p.lists.d));
                search.steps = slices.take<float>(size_t(p.lists.d));
            }
        }
        if (sharesTables) {
            params.bounds = slices.take<uint32_t>(2 * rows);
            if (plan.byTerms) {
                params.queryTerms =
                        slices.take<float>(rows * ivfTermsOf(p.lists));
            }
        } else if (hasEstimates(plan, p)) {
            params.bounds = slices.take<uint32_t>(2 * rows);
            params.codebook = slices.take<uint16_t>(
                    ivfProductCodebookBytes(p.lists.d) / sizeof(uint16_t));
            params.codebookNorms =
                    slices.take<float>(size_t(p.lists.decoding.numParts) + 1);
        }
        if (plan.findsLists) {
            params.centroidKeys = slices.take<uint32_t>(rows * numLists);
            params.foundProbes = slices.take<idx_t>(pairs);
        }
        if (plan.shared) {
            if (sortsPairsInOneBlock(idx_t(pairs), p.lists.numLists)) {
                params.arrived = slices.take<uint32_t>(1);
            }
            search.counts = slices.take<uint32_t>(numLists);
            search.firstPairs = slices.take<uint32_t>(numLists);
            search.firstTiles = slices.take<uint32_t>(numLists + 1);
            search.pairRanks = slices.take<uint32_t>(pairs);
            search.pairRows = slices.take<uint32_t>(pairs);
            search.pairColumns = slices.take<uint32_t>(pairs);
            if (isScalar(p.lists.coding)) {
                search.starts = slices.take<float>(size_t(p.lists.d));
                search.steps = slices.take<float>(size_t(p.lists.d));
            }
        }
    }
};

} // namespace faiss_bits
