#include "kernels/knn/fused/tensor/PassInClusterLaunch.cuh"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/common/Error.h"
#include "kernels/knn/fused/tensor/PassAtOnce.h"
#include "kernels/knn/fused/tensor/PassInCluster.cuh"

namespace faiss_bits {

namespace {

template <int kBlocks, int kSlabs>
void launch(const at_once::ClusterParams& params, cudaStream_t stream) {
    const auto kernel = at_once::passInClusterKernel<kBlocks, kSlabs>;
    const void* function = reinterpret_cast<const void*>(kernel);
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(at_once::kThreads);
    config.gridDim = dim3(kBlocks);
    config.dynamicSmemBytes = allowSharedBytes(
            kernel, sizeof(at_once::ClusterShared<kBlocks, kSlabs>));
    config.stream = stream;
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = kBlocks;
    attributes[0].val.clusterDim.y = 1;
    attributes[0].val.clusterDim.z = 1;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    config.attrs = attributes;
    config.numAttrs = 1;
    // Multiprocessors of a cluster are neighbours: not all make one.
    int clusters = 0;
    BITS_CUDA_CHECK(
            cudaOccupancyMaxActiveClusters(&clusters, function, &config));
    BITS_THROW_IF_NOT_FMT(
            clusters > 0, "no room for a cluster of %d blocks", kBlocks);
    constexpr int kGroups = at_once::kConsumerGroups;
    const unsigned wanted = (params.pass.tiles + kGroups - 1) / kGroups;
    config.gridDim = dim3(kBlocks * std::min(wanted, unsigned(clusters)));
    config.numAttrs = canWaitForPrevious(function) ? 2 : 1;
    void* arguments[] = {const_cast<at_once::ClusterParams*>(&params)};
    BITS_CUDA_CHECK(cudaLaunchKernelExC(&config, function, arguments));
}

} // namespace

void launchPassInCluster(
        const at_once::Params& params,
        const TensorImage& queries,
        cudaStream_t stream) {
    static_assert(
            kMostVectorsAtOnce ==
            8 * at_once::kUnitsOfBlock * int(at_once::kUnit));
    const at_once::ClusterParams cluster{
            params,
            static_cast<const uint8_t*>(queries.pieces),
            params.queries.outNorms,
            queries.residuals,
            queries.inverses};
    const bool isHalf = 2 * params.n <= kMostVectorsAtOnce;
    const auto one = params.queries.d <= 64
            ? (isHalf ? launch<4, 1> : launch<8, 1>)
            : (isHalf ? launch<4, 2> : launch<8, 2>);
    one(cluster, stream);
}

} // namespace faiss_bits
