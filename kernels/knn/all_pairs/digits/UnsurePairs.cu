/// What products of digits leave: canonical distances of pairs, eight lanes
/// each.
///
/// Bound by: reads of both rows of a pair, from L2.

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/all_pairs/digits/DigitPairs.h"
#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 4; // of a multiprocessor

template <Metric kMetric>
__global__ void __launch_bounds__(kThreads, kBlocks)
        unsurePairsKernel(const __grid_constant__ DigitPairsParams params) {
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const uint32_t count = min(params.unsure.counts[0], params.unsure.capacity);
    const uint32_t groups = gridDim.x * (kThreads / kPairLanes);
    constexpr uint32_t kOfWarp = kWarpSize / kPairLanes;
    const uint32_t thread = blockIdx.x * kThreads + threadIdx.x;
    // Warps stay together: groups without a pair have the last one.
    for (uint32_t first = thread / kWarpSize * kOfWarp; first < count;
         first += groups) {
        const uint32_t at = first + threadIdx.x % kWarpSize / kPairLanes;
        const uint2 pair = params.unsure.pairs[min(at, count - 1)];
        double distance = 0;
        withVectors(search.vectors, [&](const auto* data) {
            distance = pairDistance<kMetric>(
                    data + pair.y * search.vectors.rowStride,
                    search.vectors.columnStride,
                    search.queries + int64_t(pair.x) * search.d,
                    search.d,
                    search.power);
        });
        if (at < count && threadIdx.x % kPairLanes == 0) {
            params.distances[pair.x * params.stride + pair.y] =
                    canonical::toFloat32(distance);
        }
    }
}

} // namespace

template <Metric kMetric>
void launchUnsurePairs(
        const DigitPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    launchAfterPrevious(
            unsurePairsKernel<kMetric>,
            unsigned(kBlocks * multiprocessors),
            kThreads,
            0,
            stream,
            params);
}

template void launchUnsurePairs<Metric::L2>(
        const DigitPairsParams&,
        int,
        cudaStream_t);
template void launchUnsurePairs<Metric::InnerProduct>(
        const DigitPairsParams&,
        int,
        cudaStream_t);
template void launchUnsurePairs<Metric::Cosine>(
        const DigitPairsParams&,
        int,
        cudaStream_t);

} // namespace faiss_bits
