/// Canonical distances of what passed a fused scan.
#pragma once

#include "kernels/knn/certified/CanonicalPairs.cuh"
#include "kernels/knn/certified/Rescore.cuh"
#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

/// Pairs that eight lanes compute at a time: of metrics whose terms are few,
/// what counts are the loads in flight.
template <Metric kMetric>
constexpr int kPassedPairs = isOfProducts(kMetric) ? 2 : 1;
/// Blocks a multiprocessor, at least: registers for what is in flight, and no
/// more.
template <Metric kMetric>
constexpr int kPassedBlocks = !isOfProducts(kMetric) ? 1
        : kMetric == Metric::Cosine                  ? 3
                                                     : 4;
/// Vectors of a row that a block takes at a time.
template <Metric kMetric>
constexpr int kPassedPerBlock =
        kPassedPairs<kMetric>* kRescoreThreads / kPairLanes;

/// Entries of a row's vectors first .. last - 1, at most kPassedPerBlock, of
/// all of which a block has at least one. All its threads call it.
template <Metric kMetric>
__device__ __forceinline__ void scoreTogether(
        const CertifiedParams& params,
        uint32_t row,
        int first,
        int last,
        uint64_t* entries) {
    constexpr int kPairs = kPassedPairs<kMetric>;
    constexpr int kGroups = kRescoreThreads / kPairLanes;
    const int32_t* columns =
            params.columns + int64_t(row) * params.numCandidates;
    const float* q = params.queries + int64_t(row) * params.d;
    const int own = first + threadIdx.x / kPairLanes;
    int32_t its[kPairs]; // -1: an empty place of a list of ids
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
        // Behind the last one, that one again.
        its[p] = columns[min(own + p * kGroups, last - 1)];
        if (params.listedIds) {
            its[p] = params.listedIds[its[p]];
        }
    }
    double distances[kPairs];
    withVectors(params.vectors, [&](const auto* data) {
        std::remove_cvref_t<decltype(data)> x[kPairs];
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            x[p] = data + int64_t(max(its[p], 0)) * params.vectors.rowStride;
        }
        pairDistances<kMetric>(
                x,
                params.vectors.columnStride,
                q,
                params.d,
                params.power,
                distances);
    });
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
        const int i = own + p * kGroups;
        if (i < last && threadIdx.x % kPairLanes == 0) {
            entries[i] = its[p] < 0
                    ? kNoEntry
                    : distanceEntry<kMetric>(distances[p], uint32_t(its[p]));
        }
    }
}

/// Several blocks a row (y): entries of the listed vectors, to memory.
template <Metric kMetric>
__global__ __launch_bounds__(
        kRescoreThreads,
        kPassedBlocks<kMetric>) void scorePassedKernel(const PassedParams
                                                               params) {
    constexpr int kPerBlock = kPassedPerBlock<kMetric>;
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    for (uint32_t row = blockIdx.y; row < search.rows; row += gridDim.y) {
        const int count =
                int(min(params.counts[row], uint32_t(search.numCandidates)));
        if (search.numRescored && blockIdx.x == 0 && threadIdx.x == 0) {
            atomicAdd(search.numRescored, (unsigned long long)count);
        }
        uint64_t* entries =
                search.entries + int64_t(row) * search.numCandidates;
        for (int first = blockIdx.x * kPerBlock; first < count;
             first += gridDim.x * kPerBlock) {
            scoreTogether<kMetric>(
                    search, row, first, min(first + kPerBlock, count), entries);
        }
    }
}

} // namespace faiss_bits
