#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"

namespace faiss_bits {

/// Components of a step of a ProductTile.
constexpr int kProductDepth = 8;
/// Blocks that share a tile at most: any device with clusters takes so many.
constexpr int kMostPairParts = 8;

/// Into how many parts of the dimensions the narrow tiles of so many queries
/// and vectors are divided, each of which is a block's: 1 where tiles fill the
/// device, or dimensions are few; 0: tiles are more than run at once, or there
/// are no clusters. A power of two; metrics that isOfProducts().
constexpr int pairParts(
        int64_t rows,
        int64_t n,
        int d,
        const DeviceTraits& device) {
    constexpr int kLeastSteps = 4; // of a part
    const int64_t tiles = allPairsTiles(rows, n, kProductQueries, kNarrowTile);
    if (device.computeCapability < 90 || tiles > 2 * device.multiprocessors) {
        return 0;
    }
    const int steps = (d + kProductDepth - 1) / kProductDepth;
    int parts = 1;
    // Two of a tile may share a multiprocessor with two of another.
    const auto most = [&] {
        return int64_t(parts == 1 ? 2 : 1) * device.multiprocessors;
    };
    while (parts < kMostPairParts && steps >= 2 * parts * kLeastSteps &&
           2 * parts * tiles <= most()) {
        parts *= 2;
    }
    return parts;
}

/// launchAllPairs() of narrow tiles, each in so many parts.
template <Metric kMetric>
void launchSplitPairs(
        const AllPairsParams& params,
        int parts,
        cudaStream_t stream);

} // namespace faiss_bits
