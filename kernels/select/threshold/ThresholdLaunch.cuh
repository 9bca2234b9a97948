/// The launches of SampleThreshold; included by the generated sources only.
#pragma once

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/select/bits/BitsLaunch.cuh"
#include "kernels/select/threshold/RowsAgain.cuh"
#include "kernels/select/threshold/SplitRows.cuh"
#include "kernels/select/threshold/ThresholdLaunch.h"
#include "kernels/select/threshold/WholeRows.cuh"
#include "kernels/survivors/FinishRows.cuh"

namespace faiss_bits {

template <class Keys, int Threads, int Room>
void launchWholeRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    using Body = WholeRowsBody<
            typename Keys::Type,
            typename Keys::Tile,
            Threads,
            Room>;
    const auto kernel = wholeRowsKernel<
            typename Keys::Type,
            typename Keys::Tile,
            Threads,
            Room>;
    ThresholdParams p = params;
    const size_t wanted = Body::words(p.stages, p.capacity) * 8;
    const size_t bytes = allowSharedBytes(kernel, wanted);
    // A device with less shared memory than its traits say.
    p.capacity -= uint32_t((wanted - bytes + 7) / 8);
    BITS_THROW_IF_NOT_FMT(
            p.capacity >= std::min(p.cols, uint32_t(p.k) + kLeastFusedRoom),
            "device.blockSharedBytes promises more shared memory than the "
            "%zu bytes that a block has",
            bytes);
    kernel<<<blocks, Threads, bytes, stream>>>(p);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class Keys>
void launchSampleLimit(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    using Tile = typename Keys::Tile;
    if (params.sampleParts > 1) {
        sampleLimitKernel<Tile, kPartThreads>
                <<<blocks, kPartThreads, 0, stream>>>(params);
    } else {
        sampleLimitKernel<Tile, kSplitThreads>
                <<<blocks, kSplitThreads, 0, stream>>>(params);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class Keys>
void launchSplitRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    using Type = typename Keys::Type;
    using Tile = typename Keys::Tile;
    const auto kernel = splitRowsKernel<Type, Tile>;
    const size_t bytes = allowSharedBytes(
            kernel, sizeof(typename SplitRowsBody<Type, Tile>::SharedStorage));
    launchAfterPrevious(kernel, blocks, kSplitThreads, bytes, stream, params);
}

template <class Keys>
void launchRowsAgain(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    using Again = RowsAgainFromKeys<typename Keys::Tile, kPartThreads>;
    launchAfterPrevious(
            rowsAgainKernel<Again, kPartThreads>,
            blocks,
            kPartThreads,
            0,
            stream,
            params);
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
