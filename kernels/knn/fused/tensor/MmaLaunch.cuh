/// The kernel of the scan by mma.sync, and its launch.
#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/fused/tensor/MmaScan.cuh"

namespace faiss_bits::mma {

template <class Finder, int kRowBytes, int kStages, bool kIsL2>
__global__ void __launch_bounds__(kMmaThreads, 2)
        mmaScanKernel(const __grid_constant__ TensorScanParams params) {
    extern __shared__ __align__(1024) uint8_t shared[];
    MmaScanBody<kRowBytes, kStages, kIsL2, Finder> body{
            params,
            MmaSharedLayout(params.slabs, 128 * kRowBytes, kStages),
            shared};
    body.run();
}

template <class Finder, int kRowBytes, int kStages, bool kIsL2>
void launch(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const MmaSharedLayout layout(image.slabs, image.slabBytes, kStages);
    BITS_THROW_IF_NOT_FMT(
            size_t(layout.bytes) <= device.blockSharedBytes,
            "%zu bytes of shared memory a block are too few, %d are needed",
            device.blockSharedBytes,
            layout.bytes);
    const auto kernel = mmaScanKernel<Finder, kRowBytes, kStages, kIsL2>;
    const size_t bytes = allowSharedBytes(kernel, layout.bytes);
    const unsigned blocks = std::min<unsigned>(
            params.items, device.multiprocessors * mmaBlocks(image, device));
    kernel<<<blocks, kMmaThreads, bytes, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class Finder, bool kIsL2>
void launchFor(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        const DeviceTraits& device,
        cudaStream_t stream) {
    switch (image.rowBytes) {
        case 32:
            return launch<Finder, 32, 3, kIsL2>(params, image, device, stream);
        case 64:
            return launch<Finder, 64, 3, kIsL2>(params, image, device, stream);
        default:
            return mmaStages(image, device) == 3
                    ? launch<Finder, 128, 3, kIsL2>(
                              params, image, device, stream)
                    : launch<Finder, 128, 2, kIsL2>(
                              params, image, device, stream);
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

} // namespace faiss_bits::mma
