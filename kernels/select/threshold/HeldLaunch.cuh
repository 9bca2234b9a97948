/// The launch of rows that are held in registers; included by the generated
/// sources only.
#pragma once

#include "kernels/common/DynamicShared.h"
#include "kernels/common/KernelLaunch.h"
#include "kernels/select/bits/BitsLaunch.cuh"
#include "kernels/select/threshold/HeldLaunch.h"
#include "kernels/select/threshold/HeldRows.cuh"

namespace faiss_bits {

template <class Keys, int Threads, int Items, int Room>
void launchHeldItems(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    using Body = HeldRowsBody<typename Keys::Type, Threads, Items, Room>;
    const auto kernel =
            heldRowsKernel<typename Keys::Type, Threads, Items, Room>;
    const size_t bytes = 8 * Body::words(params.sampleParts, params.capacity);
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

/// By how many columns a block has.
template <class Keys, int Threads, int Room>
void launchHeldRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    if (params.segment <= 8 * Threads) {
        launchHeldItems<Keys, Threads, 8, Room>(params, blocks, stream);
    } else if (params.segment <= 16 * Threads) {
        launchHeldItems<Keys, Threads, 16, Room>(params, blocks, stream);
    } else {
        launchHeldItems<Keys, Threads, kMostHeldItems, Room>(
                params, blocks, stream);
    }
}

} // namespace faiss_bits
