#include "kernels/knn/fused/tensor/NearestTest.cuh"
#include "kernels/knn/fused/tensor/WgmmaLaunch.cuh"

namespace faiss_bits {

void launchWgmmaNearest(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        bool isL2,
        const DeviceTraits& device,
        cudaStream_t stream) {
    wgmma::launchFor<FindNearest>(params, image, isL2, device, stream);
}

} // namespace faiss_bits
