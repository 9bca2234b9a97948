#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/fused/tensor/MmaScan.cuh"

namespace faiss_bits {

namespace {

template <int kRowBytes, int kStages, bool kIsL2>
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
    const auto kernel = mmaScanKernel<kRowBytes, kStages, kIsL2>;
    const size_t bytes = allowSharedBytes(kernel, layout.bytes);
    const unsigned blocks = std::min<unsigned>(
            params.items, device.multiprocessors * mmaBlocks(image, device));
    kernel<<<blocks, kMmaThreads, bytes, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <bool kIsL2>
void launchFor(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        const DeviceTraits& device,
        cudaStream_t stream) {
    switch (image.rowBytes) {
        case 32:
            return launch<32, 3, kIsL2>(params, image, device, stream);
        case 64:
            return launch<64, 3, kIsL2>(params, image, device, stream);
        default:
            return mmaStages(image, device) == 3
                    ? launch<128, 3, kIsL2>(params, image, device, stream)
                    : launch<128, 2, kIsL2>(params, image, device, stream);
    }
}

} // namespace

void launchMmaScan(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        bool isL2,
        const DeviceTraits& device,
        cudaStream_t stream) {
    if (isL2) {
        launchFor<true>(params, image, device, stream);
    } else {
        launchFor<false>(params, image, device, stream);
    }
}

} // namespace faiss_bits
