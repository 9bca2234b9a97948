/// The launch of clusters; included by the generated sources only.
#pragma once

#include "kernels/common/DynamicShared.h"
#include "kernels/common/KernelLaunch.h"
#include "kernels/select/bits/BitsLaunch.cuh"
#include "kernels/select/threshold/ClusterRows.cuh"
#include "kernels/select/threshold/ThresholdLaunch.h"

namespace faiss_bits {

template <class Keys, int Threads, int Room>
void launchClusterRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    using Type = typename Keys::Type;
    using Tile = typename Keys::Tile;
    using Body = ClusterRowsBody<Type, Tile, Threads, Room>;
    const auto kernel = clusterRowsKernel<Type, Tile, Threads, Room>;
    const size_t words =
            Body::words(params.stages, params.capacity) + Body::kMostGroups;
    const size_t bytes = 8 * words;
    const size_t allowed = allowSharedBytes(kernel, bytes);
    BITS_THROW_IF_NOT_FMT(
            allowed == bytes,
            "the device has %zu bytes of shared memory a block, and the plan "
            "was made for one with %zu",
            allowed,
            bytes);
    KernelLaunch(kernel, dim3(blocks), Threads, bytes, stream)
            .inClusters(params.sampleParts)
            .enqueue(params);
}

} // namespace faiss_bits
