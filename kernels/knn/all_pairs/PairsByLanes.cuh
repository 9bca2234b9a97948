/// The matrix of canonical distances of metrics whose terms are long: eight
/// lanes a pair, a component of each at a time, so that the code of one term is
/// all that the instruction cache has to hold.
///
/// Bound by: the arithmetic of the terms.
#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"
#include "kernels/knn/certified/LongTerms.cuh"

namespace faiss_bits {

constexpr int kPairsByLanesThreads = 256;
constexpr int kPairsOfBlock = kPairsByLanesThreads / kPairLanes; // at a time

/// Rows in y.
template <Metric kMetric>
__global__ __launch_bounds__(kPairsByLanesThreads) void pairsByLanesKernel(
        const __grid_constant__ AllPairsParams params) {
    const CertifiedParams& search = params.search;
    const int group = threadIdx.x / kPairLanes;
    waitForPrevious();
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 &&
        search.numRescored) {
        atomicAdd(
                search.numRescored,
                (unsigned long long)(search.rows) * search.n);
    }
    for (uint32_t row = blockIdx.y; row < search.rows; row += gridDim.y) {
        const float* q = search.queries + int64_t(row) * search.d;
        float* distances = params.distances + row * params.stride;
        for (int64_t first = int64_t(blockIdx.x) * kPairsOfBlock;
             first < search.n;
             first += int64_t(gridDim.x) * kPairsOfBlock) {
            const int64_t vector = first + group;
            double distance = 0;
            withVectors(search.vectors, [&](const auto* data) {
                distance = distanceOfPair<kMetric>(
                        search,
                        data +
                                min(vector, search.n - 1) *
                                        search.vectors.rowStride,
                        q,
                        search.d);
            });
            if (vector < search.n && threadIdx.x % kPairLanes == 0) {
                distances[vector] = canonical::toFloat32(distance);
            }
        }
    }
}

template <Metric kMetric>
void launchPairsByLanes(
        const AllPairsParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    constexpr int64_t kBlocks = 64; // of a multiprocessor, one after another
    constexpr uint32_t kMostRows = 65535;
    const uint32_t rows = std::min(params.search.rows, kMostRows);
    const int64_t parts = (params.search.n + kPairsOfBlock - 1) / kPairsOfBlock;
    const int64_t wanted = (kBlocks * multiprocessors + rows - 1) / rows;
    launchAfterPrevious(
            pairsByLanesKernel<kMetric>,
            dim3(unsigned(std::min(parts, wanted)), rows),
            kPairsByLanesThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits
