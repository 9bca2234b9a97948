#include "kernels/knn/fused/tensor/NearestTest.cuh"
#include "kernels/knn/fused/tensor/NearestTiles.h"
#include "kernels/knn/fused/tensor/WgmmaLaunch.cuh"

namespace faiss_bits {

void launchWgmmaNearestTiles(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        bool isL2,
        const DeviceTraits& device,
        cudaStream_t stream) {
    using Finder = FindNearestOfTiles;
    if (wgmmaShapeFor(image).streamed) {
        const auto launch = isL2 ? wgmma::launchLong<Finder, true, true>
                                 : wgmma::launchLong<Finder, true, false>;
        return launch(params, device, stream);
    }
    const auto launch = isL2 ? wgmma::launchLong<Finder, false, true>
                             : wgmma::launchLong<Finder, false, false>;
    launch(params, device, stream);
}

} // namespace faiss_bits
