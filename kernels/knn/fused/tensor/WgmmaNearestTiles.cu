#include "kernels/knn/fused/tensor/NearestTest.cuh"
#include "kernels/knn/fused/tensor/NearestTiles.h"
#include "kernels/knn/fused/tensor/WgmmaLaunch.cuh"

namespace faiss_bits {

void launchWgmmaNearestTiles(
        const TensorScanParams& params,
        const TensorImageLayout&,
        bool isL2,
        const DeviceTraits& device,
        cudaStream_t stream) {
    const auto launch = isL2
            ? wgmma::launchLong<FindNearestOfTiles, true, true>
            : wgmma::launchLong<FindNearestOfTiles, true, false>;
    launch(params, device, stream);
}

} // namespace faiss_bits
