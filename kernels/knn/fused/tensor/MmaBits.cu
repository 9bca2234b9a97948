#include "kernels/knn/fused/tensor/BitsTest.cuh"
#include "kernels/knn/fused/tensor/MmaLaunch.cuh"

namespace faiss_bits {

void launchMmaBits(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        bool isL2,
        const DeviceTraits& device,
        cudaStream_t stream) {
    mma::launchFor<FindPassingBits>(params, image, isL2, device, stream);
}

} // namespace faiss_bits
