#include "kernels/knn/fused/tensor/PassInClusterLaunch.cuh"

#include <algorithm>

#include "kernels/common/DynamicShared.h"
#include "kernels/common/Error.h"
#include "kernels/common/KernelLaunch.h"
#include "kernels/knn/fused/tensor/PassAtOnce.h"
#include "kernels/knn/fused/tensor/PassInCluster.cuh"

namespace faiss_bits {

namespace {

template <int kBlocks, int kSlabs>
void launchOne(const at_once::ClusterParams& params, cudaStream_t stream) {
    const auto kernel = at_once::passInClusterKernel<kBlocks, kSlabs>;
    const size_t bytes = allowSharedBytes(
            kernel, sizeof(at_once::ClusterShared<kBlocks, kSlabs>));
    KernelLaunch launch(
            kernel, dim3(kBlocks), at_once::kThreads, bytes, stream);
    launch.inClusters(kBlocks);
    const int clusters = launch.mostClusters();
    BITS_THROW_IF_NOT_FMT(
            clusters > 0, "no room for a cluster of %d blocks", kBlocks);
    constexpr int kGroups = at_once::kConsumerGroups;
    const unsigned wanted = (params.pass.tiles + kGroups - 1) / kGroups;
    launch.setBlocks(dim3(kBlocks * std::min(wanted, unsigned(clusters))));
    launch.early().enqueue(params);
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
            ? (isHalf ? launchOne<4, 1> : launchOne<8, 1>)
            : (isHalf ? launchOne<4, 2> : launchOne<8, 2>);
    one(cluster, stream);
}

} // namespace faiss_bits
