#pragma once

#include <algorithm>

#include "kernels/ivf/IvfDirectParams.h"
#include "kernels/ivf/ListCodes.h"

namespace faiss_bits {

/// What blocks of staged scans (IvfGroupStages.cuh) have of shared memory: a
/// codebook, if any, and for each team its stages, and tables.
struct IvfStagedParams {
    IvfDirectParams direct;
    uint32_t codebookBytes = 0;
    uint32_t stageBytes = 0; // of a stage
    uint32_t tableBytes = 0; // of a team's tables
    uint32_t teamBytes = 0;  // of all that a team has
    int stages = 0;
};

/// Whether vectors are residuals, to which a centroid is added.
inline bool ivfAreResiduals(const IvfLists& lists) {
    return lists.coding != ListCoding::Float32 && lists.decoding.centroids;
}

/// Components of a group that a stage has: product codes have all.
BITS_HOST_DEVICE constexpr int ivfStageDims(ListCoding coding, int d) {
    return coding == ListCoding::Product || d < kIvfDirectDims ? d
                                                               : kIvfDirectDims;
}

/// The launch of a staged scan: three stages, if these leave room for as many
/// blocks as a multiprocessor takes, else two.
struct IvfStagedPlan {
    static constexpr int kMostStages = 3;

    IvfStagedParams params;
    size_t bytes = 0; // of a block
    int blocks = 0;   // of a multiprocessor; 0: it has too little memory

    /// tableBytes: of a team; least: what a team has in place of its stages
    /// before the first copy.
    IvfStagedPlan(
            const IvfDirectParams& direct,
            const DeviceTraits& device,
            size_t tableBytes,
            size_t least) {
        constexpr size_t kReserved = 1024; // of a block, by CUDA
        const IvfLists& lists = direct.search.lists;
        const int teams = ivfTeamsOf(lists.coding);
        params.direct = direct;
        params.codebookBytes = uint32_t(codebookOf(lists));
        params.stageBytes = uint32_t(stageOf(lists));
        params.tableBytes = uint32_t(roundUp(tableBytes));
        const int wanted = kIvfDirectBlocks / teams;
        for (params.stages = kMostStages; params.stages >= 2; --params.stages) {
            const size_t stages =
                    std::max(params.stages * stageOf(lists), roundUp(least));
            params.teamBytes = uint32_t(stages) + params.tableBytes;
            bytes = params.codebookBytes + size_t(teams) * params.teamBytes;
            if (wanted * (bytes + kReserved) <= device.sharedBytes) {
                blocks = wanted;
                return;
            }
        }
        params.stages = 2;
        if (bytes <= device.blockSharedBytes) {
            blocks = std::max(1, int(device.sharedBytes / (bytes + kReserved)));
        }
    }

   private:
    static size_t roundUp(size_t bytes) {
        return (bytes + 15) / 16 * 16;
    }

    static size_t codebookOf(const IvfLists& lists) {
        return lists.coding == ListCoding::Product
                ? roundUp((size_t(lists.d) << lists.decoding.partBits) *
                          sizeof(float))
                : 0;
    }

    /// Codes, and some bytes behind, and components of a centroid.
    static size_t stageOf(const IvfLists& lists) {
        const int dims = ivfStageDims(lists.coding, lists.d);
        const size_t codes = lists.coding == ListCoding::Product
                ? size_t(lists.decoding.numParts)
                : size_t(dims);
        return roundUp(codes * bitsOfCodes(lists) * kIvfGroup / 8 + 1) +
                (ivfAreResiduals(lists) ? roundUp(dims * sizeof(float)) : 0);
    }
};

} // namespace faiss_bits
