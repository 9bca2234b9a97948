#pragma once

#include <algorithm>

#include "kernels/ivf/IvfDirectParams.h"
#include "kernels/ivf/ListCodes.h"

namespace faiss_bits {

/// Codings whose interleaved lists come through shared memory.
BITS_HOST_DEVICE constexpr bool isStaged(ListCoding coding) {
    return coding != ListCoding::Float32 && coding != ListCoding::Product;
}

/// Lists that do.
constexpr bool areStaged(const IvfLists& lists) {
    return isStaged(lists.coding) && lists.layout == ListLayout::Interleaved;
}
/// Those of shared lists, of which a lane has four vectors.
constexpr bool areSharedByFours(const IvfLists& lists) {
    return areStaged(lists) && !areSharedAlone(lists);
}

/// Components that a stage of shared lists has: of float16 half as many, which
/// are as many bytes as of eight bits.
BITS_HOST_DEVICE constexpr int ivfFoursDims(int bits) {
    return bits == 16 ? kIvfDirectDims / 2 : kIvfDirectDims;
}

/// What blocks of staged scans (IvfGroupStages.cuh, IvfFoursStages.cuh) have of
/// shared memory: stages, and tables behind them.
struct IvfStagedParams {
    IvfDirectParams direct;
    uint32_t stageBytes = 0; // of a stage
    uint32_t allStages = 0;  // bytes
    int stages = 0;
};

/// The launch of a staged scan: three stages, if these leave room for all
/// blocks that a multiprocessor takes at a time, else two.
struct IvfStagedPlan {
    static constexpr int kMostStages = 3;

    IvfStagedParams params;
    size_t bytes = 0; // of a block
    int blocks = 1;   // of a multiprocessor

    /// stage: bytes of one, on sixteen. least: what a block has in place of its
    /// stages before the first copy. most: blocks of a multiprocessor.
    IvfStagedPlan(
            const IvfDirectParams& direct,
            const DeviceTraits& device,
            size_t stage,
            size_t tableBytes,
            size_t least,
            int most) {
        constexpr size_t kReserved = 1024; // of a block, by CUDA
        const auto allOf = [&](int stages) {
            return std::max(stages * stage, roundUp(least));
        };
        const auto fit = [&](int stages) {
            return int(std::min<size_t>(
                    device.sharedBytes /
                            (allOf(stages) + tableBytes + kReserved),
                    size_t(most)));
        };
        params.direct = direct;
        params.stages = fit(kMostStages) == most ? kMostStages : 2;
        params.stageBytes = uint32_t(stage);
        params.allStages = uint32_t(allOf(params.stages));
        bytes = params.allStages + tableBytes;
        blocks = std::max(fit(params.stages), 1);
    }

    /// A stage of a group: codes, and something behind, and components of a
    /// centroid.
    static size_t groupStage(const IvfLists& lists) {
        const size_t dims = size_t(std::min(lists.d, kIvfDirectDims));
        return roundUp(dims * bitsOfCodes(lists) * kIvfGroup / 8 + 1) +
                centroidBytes(lists, dims);
    }

    /// Of kIvfFoursVectors.
    static size_t foursStage(const IvfLists& lists) {
        const int bits = bitsOfCodes(lists);
        return kIvfFoursVectors / kIvfGroup * foursGroupBytes(lists.d, bits) +
                centroidBytes(
                        lists, size_t(std::min(lists.d, ivfFoursDims(bits))));
    }

    /// Of one group in it, on sixteen.
    BITS_HOST_DEVICE static constexpr size_t foursGroupBytes(int d, int bits) {
        const int most = ivfFoursDims(bits);
        return roundUp(size_t(d < most ? d : most) * bits * kIvfGroup / 8);
    }

   private:
    BITS_HOST_DEVICE static constexpr size_t roundUp(size_t bytes) {
        return (bytes + 15) / 16 * 16;
    }
    static size_t centroidBytes(const IvfLists& lists, size_t dims) {
        return lists.decoding.centroids ? roundUp(dims * sizeof(float)) : 0;
    }
};

} // namespace faiss_bits
