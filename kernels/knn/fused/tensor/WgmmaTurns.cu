#include "kernels/knn/fused/tensor/DenseTest.cuh"
#include "kernels/knn/fused/tensor/WgmmaLaunch.cuh"

namespace faiss_bits {

namespace {

/// Few queries have limits that many pass, so that a fragment of all of them
/// mostly has some.
using Finder = TakesTurns<FindPassingMany>;

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
    const auto launch = isL2 ? wgmma::launchKept<Finder, true>
                             : wgmma::launchKept<Finder, false>;
    launch(params, image, device, stream);
}

} // namespace faiss_bits
