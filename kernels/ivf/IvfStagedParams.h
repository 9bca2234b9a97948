#pragma once

#include <algorithm>

#include "kernels/ivf/IvfDirectParams.h"
#include "kernels/ivf/ListCodes.h"

namespace faiss_bits {

/// Codings whose interleaved lists come through shared memory.
BITS_HOST_DEVICE constexpr bool isStaged(ListCoding coding) {
    return coding != ListCoding::Float32 && coding != ListCoding::Product;
}

/// What blocks of staged scans (IvfGroupStages.cuh) have of shared memory:
/// stages, and tables behind them.
struct IvfStagedParams {
    IvfDirectParams direct;
    uint32_t stageBytes = 0; // of a stage
    uint32_t allStages = 0;  // bytes
    int stages = 0;
};

/// The launch of a staged scan: three stages, if these leave room for
/// kIvfDirectBlocks blocks, else two.
struct IvfStagedPlan {
    static constexpr int kMostStages = 3;

    IvfStagedParams params;
    size_t bytes = 0; // of a block
    int blocks = 1;   // of a multiprocessor

    /// least: what a block has in place of its stages before the first copy.
    IvfStagedPlan(
            const IvfDirectParams& direct,
            const DeviceTraits& device,
            size_t tableBytes,
            size_t least) {
        constexpr size_t kReserved = 1024; // of a block, by CUDA
        const size_t stage = stageOf(direct.search.lists);
        const auto allOf = [&](int stages) {
            return std::max(stages * stage, roundUp(least));
        };
        const auto fit = [&](int stages) {
            return int(std::min<size_t>(
                    device.sharedBytes /
                            (allOf(stages) + tableBytes + kReserved),
                    kIvfDirectBlocks));
        };
        params.direct = direct;
        params.stages = fit(kMostStages) == kIvfDirectBlocks ? kMostStages : 2;
        params.stageBytes = uint32_t(stage);
        params.allStages = uint32_t(allOf(params.stages));
        bytes = params.allStages + tableBytes;
        blocks = std::max(fit(params.stages), 1);
    }

   private:
    static size_t roundUp(size_t bytes) {
        return (bytes + 15) / 16 * 16;
    }

    /// Codes, and something behind, and components of a centroid.
    static size_t stageOf(const IvfLists& lists) {
        const size_t dims = size_t(std::min(lists.d, kIvfDirectDims));
        return roundUp(dims * bitsOfCodes(lists) * kIvfGroup / 8 + 1) +
                (lists.decoding.centroids ? roundUp(dims * sizeof(float)) : 0);
    }
};

} // namespace faiss_bits
