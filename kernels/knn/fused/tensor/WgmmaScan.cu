/// Compiled for sm_90a alone, whose instructions other architectures lack.
#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/fused/tensor/WgmmaScan.cuh"

namespace faiss_bits {

namespace {

/// Two tiles of queries, of which one is read ahead, where that leaves enough
/// for a stream of vectors.
void planShared(TensorScanParams& params, WgmmaShape shape, size_t bytes) {
    constexpr int kEnough = 5;
    for (params.queryBuffers = 2; params.queryBuffers > 0;
         --params.queryBuffers) {
        for (params.stages = kMaxStages; params.stages > 1; --params.stages) {
            const WgmmaSharedLayout layout(
                    shape, params.slabs, params.stages, params.queryBuffers);
            if (size_t(layout.bytes) <= bytes &&
                (params.stages >= kEnough || params.queryBuffers == 1)) {
                return;
            }
        }
    }
    throw Error(formatMessage(
            "%zu bytes of shared memory a block are too few", bytes));
}

template <int kRowBytes, bool kStreamed, int kLastSteps, bool kIsL2>
void launch(
        TensorScanParams params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    constexpr WgmmaShape kShape{kRowBytes, kStreamed};
    planShared(params, kShape, device.blockSharedBytes);
    const WgmmaSharedLayout layout(
            kShape, params.slabs, params.stages, params.queryBuffers);
    const auto kernel =
            wgmmaScanKernel<kRowBytes, kStreamed, kLastSteps, kIsL2>;
    const size_t bytes = allowSharedBytes(kernel, layout.bytes);
    const unsigned blocks =
            std::min<unsigned>(params.items, device.multiprocessors);
    launchAfterPrevious(
            kernel, blocks, kShape.threads(), bytes, stream, params);
}

template <bool kStreamed, bool kIsL2>
void launchLong(
        const TensorScanParams& params,
        const DeviceTraits& device,
        cudaStream_t stream) {
    switch (params.lastSteps) {
        case 1:
            return launch<128, kStreamed, 1, kIsL2>(params, device, stream);
        case 2:
            return launch<128, kStreamed, 2, kIsL2>(params, device, stream);
        case 3:
            return launch<128, kStreamed, 3, kIsL2>(params, device, stream);
        default:
            return launch<128, kStreamed, 4, kIsL2>(params, device, stream);
    }
}

template <bool kIsL2>
void launchFor(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        const DeviceTraits& device,
        cudaStream_t stream) {
    if (wgmmaShapeFor(image).streamed) {
        return launchLong<true, kIsL2>(params, device, stream);
    }
    switch (image.rowBytes) {
        case 32:
            return launch<32, false, 1, kIsL2>(params, device, stream);
        case 64:
            return launch<64, false, 2, kIsL2>(params, device, stream);
        default:
            return launchLong<false, kIsL2>(params, device, stream);
    }
}

} // namespace

void launchWgmmaScan(
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
