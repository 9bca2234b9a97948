/// The launch of clusters; included by the generated sources only.
#pragma once

#include "kernels/common/DynamicShared.h"
#include "kernels/select/bits/BitsLaunch.cuh"
#include "kernels/select/threshold/ClusterRows.cuh"
#include "kernels/select/threshold/ThresholdLaunch.h"

namespace faiss_bits {

template <class Keys, int Threads, int Room>
void launchClusterRows(
        const ThresholdParams& params,
        unsigned blocks,
        cudaStream_t stream) {
    using Type = typename Keys::Type;
    using Tile = typename Keys::Tile;
    using Body = ClusterRowsBody<Type, Tile, Threads, Room>;
    const auto kernel = clusterRowsKernel<Type, Tile, Threads, Room>;
    const void* function = reinterpret_cast<const void*>(kernel);
    if (params.sampleParts > kPortableCluster) {
        BITS_CUDA_CHECK(cudaFuncSetAttribute(
                function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    }
    const size_t words =
            Body::words(params.stages, params.capacity) + Body::kMostGroups;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(Threads);
    config.dynamicSmemBytes = allowSharedBytes(kernel, 8 * words);
    BITS_THROW_IF_NOT_FMT(
            config.dynamicSmemBytes == 8 * words,
            "the device has %zu bytes of shared memory a block, and the plan "
            "was made for one with %zu",
            size_t(config.dynamicSmemBytes),
            size_t(8 * words));
    config.stream = stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {params.sampleParts, 1, 1};
    config.attrs = &attribute;
    config.numAttrs = 1;
    void* arguments[] = {const_cast<ThresholdParams*>(&params)};
    BITS_CUDA_CHECK(cudaLaunchKernelExC(&config, function, arguments));
}

} // namespace faiss_bits
