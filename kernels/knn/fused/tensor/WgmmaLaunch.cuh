/// The kernel of a shape, and its launch. Compiled for sm_90a alone, whose
/// instructions other architectures lack.
#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/fused/tensor/WgmmaScan.cuh"

namespace faiss_bits::wgmma {

template <
        class Finder,
        int kRowBytes,
        bool kStreamed,
        int kLastSteps,
        bool kIsL2>
__global__ void __launch_bounds__(WgmmaShape{kRowBytes, kStreamed}.threads(), 1)
        wgmmaScanKernel(const __grid_constant__ TensorScanParams params) {
    extern __shared__ __align__(1024) uint8_t shared[];
    WgmmaScanBody<kRowBytes, kStreamed, kLastSteps, kIsL2, Finder> body{
            {params,
             WgmmaSharedLayout(
                     {kRowBytes, kStreamed},
                     params.slabs,
                     params.stages,
                     params.queryBuffers,
                     Finder::Buffer::kEntries),
             shared}};
    body.run();
}

/// Two tiles of queries, of which one is read ahead, where that leaves enough
/// for a stream of vectors.
inline void planShared(
        TensorScanParams& params,
        WgmmaShape shape,
        int bufferWords,
        size_t bytes) {
    constexpr int kEnough = 5;
    for (params.queryBuffers = 2; params.queryBuffers > 0;
         --params.queryBuffers) {
        for (params.stages = kMaxStages; params.stages > 1; --params.stages) {
            const WgmmaSharedLayout layout(
                    shape,
                    params.slabs,
                    params.stages,
                    params.queryBuffers,
                    bufferWords);
            if (size_t(layout.bytes) <= bytes &&
                (params.stages >= kEnough || params.queryBuffers == 1)) {
                return;
            }
        }
    }
    throw Error(formatMessage(
            "%zu bytes of shared memory a block are too few", bytes));
}

template <
        class Finder,
        int kRowBytes,
        bool kStreamed,
        int kLastSteps,
        bool kIsL2>
void launch(
        TensorScanParams params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    constexpr WgmmaShape kShape{kRowBytes, kStreamed};
    constexpr int kWords = Finder::Buffer::kEntries;
    planShared(params, kShape, kWords, device.blockSharedBytes);
    const WgmmaSharedLayout layout(
            kShape, params.slabs, params.stages, params.queryBuffers, kWords);
    const auto kernel =
            wgmmaScanKernel<Finder, kRowBytes, kStreamed, kLastSteps, kIsL2>;
    const size_t bytes = allowSharedBytes(kernel, layout.bytes);
    const unsigned blocks =
            std::min<unsigned>(params.items, device.multiprocessors);
    launchAfterPrevious(
            kernel, blocks, kShape.threads(), bytes, stream, params);
}

template <class Finder, bool kStreamed, bool kIsL2>
void launchLong(
        const TensorScanParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    switch (params.lastSteps) {
        case 1:
            return launch<Finder, 128, kStreamed, 1, kIsL2>(
                    params, device, stream);
        case 2:
            return launch<Finder, 128, kStreamed, 2, kIsL2>(
                    params, device, stream);
        case 3:
            return launch<Finder, 128, kStreamed, 3, kIsL2>(
                    params, device, stream);
        default:
            return launch<Finder, 128, kStreamed, 4, kIsL2>(
                    params, device, stream);
    }
}

/// Of images whose queries a block keeps.
template <class Finder, bool kIsL2>
void launchKept(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        const DeviceTraits& device,
        cudaStream_t stream) {
    switch (image.rowBytes) {
        case 32:
            return launch<Finder, 32, false, 1, kIsL2>(params, device, stream);
        case 64:
            return launch<Finder, 64, false, 2, kIsL2>(params, device, stream);
        default:
            return launchLong<Finder, false, kIsL2>(params, device, stream);
    }
}

template <class Finder, bool kIsL2>
void launchFor(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        const DeviceTraits& device,
        cudaStream_t stream) {
    if (wgmmaShapeFor(image).streamed) {
        launchLong<Finder, true, kIsL2>(params, device, stream);
    } else {
        launchKept<Finder, kIsL2>(params, image, device, stream);
    }
}

template <class Finder>
void launchFor(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        bool isL2,
        const DeviceTraits& device,
        cudaStream_t stream) {
    if (isL2) {
        launchFor<Finder, true>(params, image, device, stream);
    } else {
        launchFor<Finder, false>(params, image, device, stream);
    }
}

} // namespace faiss_bits::wgmma
