/// The launches of SampleThreshold; included by the generated sources only.
#pragma once

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/common/KernelLaunch.h"
#include "kernels/select/bits/BitsLaunch.cuh"
#include "kernels/select/threshold/RowsAgain.cuh"
#include "kernels/select/threshold/SplitRows.cuh"
#include "kernels/select/threshold/ThresholdLaunch.h"
#include "kernels/select/threshold/WholeRows.cuh"
#include "kernels/survivors/FinishRows.cuh"

namespace faiss_bits {

/// Whether rows stream that do not begin at multiples of 16 bytes: tiles of
/// blocks of so many threads, keys without bias.
template <class Keys>
bool streamsUnaligned(const ThresholdParams& params, int threads) {
    return !params.vectorLoads &&
            params.cols / kLeastStreamedTiles >=
            uint32_t(threads) * Keys::Tile::kItems;
}

template <class Keys, int Threads, int Room, bool Unaligned>
void launchWholeRowsKernel(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    using Type = typename Keys::Type;
    using Tile = typename Keys::Tile;
    using Body = WholeRowsBody<Type, Tile, Threads, Room, Unaligned>;
    const auto kernel = wholeRowsKernel<Type, Tile, Threads, Room, Unaligned>;
    ThresholdParams p = params;
    const size_t wanted = Body::words(p.stages, p.capacity) * 8;
    const size_t bytes = allowSharedBytes(kernel, wanted);
    // A device with less shared memory than its traits say.
    p.capacity -= std::min(p.capacity, uint32_t((wanted - bytes + 7) / 8));
    BITS_THROW_IF_NOT_FMT(
            p.capacity >= std::min(p.cols, uint32_t(p.k) + kLeastFusedRoom),
            "device.blockSharedBytes promises more shared memory than the "
            "%zu bytes that a block has",
            bytes);
    kernel<<<blocks, Threads, bytes, stream>>>(p);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class Keys, int Threads, int Room>
void launchWholeRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    if constexpr (!Keys::Tile::kHasBias) {
        if (streamsUnaligned<Keys>(params, Threads)) {
            launchWholeRowsKernel<Keys, Threads, Room, true>(
                    params, blocks, stream);
            return;
        }
    }
    launchWholeRowsKernel<Keys, Threads, Room, false>(params, blocks, stream);
}

template <class Keys>
void launchSampleLimit(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    using Tile = typename Keys::Tile;
    const bool byParts = params.sampleParts > 1;
    const auto kernel = byParts ? sampleLimitKernel<Tile, kPartThreads>
                                : sampleLimitKernel<Tile, kSplitThreads>;
    const unsigned threads = byParts ? kPartThreads : kSplitThreads;
    if (params.isAgain) {
        launchAfterPrevious(kernel, blocks, threads, 0, stream, params);
        return;
    }
    kernel<<<blocks, threads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class Keys, bool Unaligned>
void launchSplitRowsKernel(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    using Type = typename Keys::Type;
    using Tile = typename Keys::Tile;
    using Body = SplitRowsBody<Type, Tile, Unaligned>;
    const auto kernel = splitRowsKernel<Type, Tile, Unaligned>;
    const size_t bytes =
            allowSharedBytes(kernel, sizeof(typename Body::SharedStorage));
    launchAfterPrevious(kernel, blocks, kSplitThreads, bytes, stream, params);
}

template <class Keys>
void launchSplitRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    if constexpr (!Keys::Tile::kHasBias) {
        if (streamsUnaligned<Keys>(params, kSplitThreads)) {
            launchSplitRowsKernel<Keys, true>(params, blocks, stream);
            return;
        }
    }
    launchSplitRowsKernel<Keys, false>(params, blocks, stream);
}

template <class Keys>
void launchRowsAgain(
        const RowsAgainParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    const auto kernel = rowsAgainKernel<
            typename Keys::Type,
            typename Keys::Tile,
            kAgainThreads>;
    KernelLaunch(kernel, dim3(blocks), kAgainThreads, 0, stream)
            .inClusters(params.clusterBlocks)
            .early()
            .enqueue(params);
}

template <class Keys, int Threads, int Room>
void launchFinishRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    using Again = RowsAgainFromKeys<typename Keys::Tile, Threads>;
    launchFinishKernel<typename Keys::Type, Again, Threads, Room>(
            params, blocks, stream);
}

} // namespace faiss_bits
