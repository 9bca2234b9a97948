#include "kernels/knn/fused/tensor/PassedProducts.cuh"
#include "kernels/knn/fused/tensor/WgmmaLaunch.cuh"

namespace faiss_bits {

void launchWgmmaProducts(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        bool isL2,
        const DeviceTraits& device,
        cudaStream_t stream) {
    wgmma::launchFor<FindPassingProducts>(params, image, isL2, device, stream);
}

} // namespace faiss_bits
