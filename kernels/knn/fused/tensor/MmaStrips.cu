#include "kernels/knn/fused/tensor/MmaLaunch.cuh"
#include "kernels/knn/fused/tensor/StripTest.cuh"

namespace faiss_bits {

void launchMmaStrips(
        const TensorScanParams& params,
        const TensorImageLayout& image,
        bool isL2,
        const DeviceTraits& device,
        cudaStream_t stream) {
    mma::launchFor<FindStripKeys>(params, image, isL2, device, stream);
}

} // namespace faiss_bits
