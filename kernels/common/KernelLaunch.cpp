#include "kernels/common/KernelLaunch.h"

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"

namespace faiss_bits {

KernelLaunch::KernelLaunch(
        const void* kernel,
        dim3 blocks,
        unsigned threads,
        size_t sharedBytes,
        cudaStream_t stream)
        : kernel_(kernel) {
    config_.gridDim = blocks;
    config_.blockDim = dim3(threads);
    config_.dynamicSmemBytes = sharedBytes;
    config_.stream = stream;
}

KernelLaunch& KernelLaunch::inClusters(unsigned size) {
    if (size > unsigned(kPortableCluster)) {
        BITS_CUDA_CHECK(cudaFuncSetAttribute(
                kernel_, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    }
    if (size > 1) {
        cudaLaunchAttribute& cluster = add(cudaLaunchAttributeClusterDimension);
        cluster.val.clusterDim.x = size;
        cluster.val.clusterDim.y = 1;
        cluster.val.clusterDim.z = 1;
    }
    return *this;
}

KernelLaunch& KernelLaunch::cooperative() {
    add(cudaLaunchAttributeCooperative).val.cooperative = 1;
    return *this;
}

KernelLaunch& KernelLaunch::early() {
    if (canWaitForPrevious(kernel_)) {
        add(cudaLaunchAttributeProgrammaticStreamSerialization)
                .val.programmaticStreamSerializationAllowed = 1;
    }
    return *this;
}

int KernelLaunch::mostClusters() const {
    const cudaLaunchConfig_t config = this->config();
    int clusters = 0;
    BITS_CUDA_CHECK(
            cudaOccupancyMaxActiveClusters(&clusters, kernel_, &config));
    return clusters;
}

void KernelLaunch::enqueueBytes(const void* params) const {
    const cudaLaunchConfig_t config = this->config();
    void* arguments[] = {const_cast<void*>(params)};
    BITS_CUDA_CHECK(cudaLaunchKernelExC(&config, kernel_, arguments));
}

cudaLaunchAttribute& KernelLaunch::add(cudaLaunchAttributeID id) {
    cudaLaunchAttribute& attribute = attributes_[config_.numAttrs++];
    attribute.id = id;
    return attribute;
}

cudaLaunchConfig_t KernelLaunch::config() const {
    cudaLaunchConfig_t config = config_;
    config.attrs = const_cast<cudaLaunchAttribute*>(attributes_);
    return config;
}

} // namespace faiss_bits
