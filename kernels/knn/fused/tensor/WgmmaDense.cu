#include "kernels/knn/fused/tensor/DenseScan.h"
#include "kernels/knn/fused/tensor/OwnLists.cuh"
#include "kernels/knn/fused/tensor/WgmmaLaunch.cuh"

namespace faiss_bits {

void launchWgmmaDense(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        bool isL2,
        const DeviceTraits& device,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(
            !wgmmaShapeFor(image).streamed && image.rowBytes == 128,
            "slabs = %d, rowBytes = %d: no scan of many that pass",
            image.slabs,
            image.rowBytes);
    // With one chunk a tile's lists are its block's.
    const bool isOwn = params.chunks == 1;
    const auto launch = isL2
            ? (isOwn ? wgmma::launchLong<FindPassingOwn, false, true>
                     : wgmma::launchLong<FindPassingMany, false, true>)
            : (isOwn ? wgmma::launchLong<FindPassingOwn, false, false>
                     : wgmma::launchLong<FindPassingMany, false, false>);
    launch(params, device, stream);
}

} // namespace faiss_bits
