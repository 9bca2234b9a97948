#include "kernels/knn/fused/tensor/PassedProducts.cuh"
#include "kernels/knn/fused/tensor/WgmmaLaunch.cuh"

namespace faiss_bits {

void launchWgmmaProducts(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        bool isL2,
        const DeviceTraits& device,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(
            wgmmaShapeFor(image).streamed,
            "slabs = %d: products are kept of longer rows",
            image.slabs);
    if (isL2) {
        wgmma::launchLong<FindPassingProducts, true, true>(
                params, device, stream);
    } else {
        wgmma::launchLong<FindPassingProducts, true, false>(
                params, device, stream);
    }
}

} // namespace faiss_bits
