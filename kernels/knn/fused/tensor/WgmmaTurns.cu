#include "kernels/knn/fused/tensor/DenseTest.cuh"
#include "kernels/knn/fused/tensor/WgmmaLaunch.cuh"

namespace faiss_bits {

namespace {

/// Few queries have limits that many pass, so that a fragment of all of them
/// mostly has some.
using Finder = TakesTurns<FindPassingMany>;

template <bool kIsL2>
void launchShort(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        const DeviceTraits& device,
        cudaStream_t stream) {
    switch (image.rowBytes) {
        case 32:
            return wgmma::launch<Finder, 32, false, 1, kIsL2>(
                    params, device, stream);
        case 64:
            return wgmma::launch<Finder, 64, false, 2, kIsL2>(
                    params, device, stream);
        default:
            return wgmma::launchLong<Finder, false, kIsL2>(
                    params, device, stream);
    }
}

} // namespace

void launchWgmmaTurns(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        bool isL2,
        const DeviceTraits& device,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(
            !wgmmaShapeFor(image).streamed &&
                    params.numQueries <= kMostTurnQueries,
            "slabs = %d, numQueries = %u: no scan in turns",
            image.slabs,
            params.numQueries);
    const auto launch = isL2 ? launchShort<true> : launchShort<false>;
    launch(params, image, device, stream);
}

} // namespace faiss_bits
