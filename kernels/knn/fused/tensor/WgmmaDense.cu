#include "kernels/knn/fused/tensor/DenseScan.h"
#include "kernels/knn/fused/tensor/DenseTest.cuh"
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
    if (isL2) {
        wgmma::launchLong<FindPassingMany, false, true>(params, device, stream);
    } else {
        wgmma::launchLong<FindPassingMany, false, false>(
                params, device, stream);
    }
}

} // namespace faiss_bits
