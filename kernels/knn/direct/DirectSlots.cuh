/// The same keys as DirectScan.cuh for so few pairs that the wait for memory is
/// all of the time: eight lanes a pair, a slot each, so that a row of many
/// dimensions is a few waits.
#pragma once

#include "kernels/device/WarpReduce.cuh"
#include "kernels/knn/certified/CanonicalPair.cuh"
#include "kernels/knn/direct/DirectVector.cuh"

namespace faiss_bits {

constexpr int kDirectSlotsThreads = 256;
static_assert(kDirectSlotsThreads / kPairLanes == kDirectUnit);

/// A block a unit (x) and query (y); groups are units.
template <Metric kMetric, class T>
__global__ __launch_bounds__(kDirectSlotsThreads) void directSlotsKernel(
        const __grid_constant__ DirectScanParams params) {
    constexpr int kWarps = kDirectSlotsThreads / kWarpSize;
    __shared__ uint64_t leastOfWarps[kWarps];
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const DirectKeys& out = params.out;
    const uint32_t row = blockIdx.y;
    const float* query = search.queries + int64_t(row) * search.d;
    const auto* vectors = static_cast<const T*>(search.vectors.data);
    const bool isFirst = threadIdx.x % kPairLanes == 0;
    // A row of many dimensions is few waits.
    constexpr int kAhead = 16;
    for (uint32_t unit = blockIdx.x; unit < out.groups; unit += gridDim.x) {
        const int64_t place =
                int64_t(unit) * kDirectUnit + threadIdx.x / kPairLanes;
        const int32_t vector = directVector(search, out, place);
        const double distance = pairDistance<kMetric, kAhead>(
                vectors + int64_t(max(vector, 0)) * search.vectors.rowStride,
                search.vectors.columnStride,
                query,
                vector >= 0 ? search.d : 0,
                canonical::Power{});
        const uint64_t entry = vector >= 0
                ? distanceEntry<kMetric>(distance, uint32_t(vector))
                : kNoEntry;
        if (isFirst) {
            out.keys[int64_t(row) * out.stride + place] = entryKey(entry);
        }
        if (out.least) {
            const uint64_t least = leastOfWarp(entry);
            if (threadIdx.x % kWarpSize == 0) {
                leastOfWarps[threadIdx.x / kWarpSize] = least;
            }
        }
        // One number a block: one address takes a while for thousands.
        const int present = __syncthreads_count(isFirst && vector >= 0);
        if (search.numRescored && threadIdx.x == 0 && present > 0) {
            atomicAdd(search.numRescored, (unsigned long long)present);
        }
        if (!out.least) {
            continue;
        }
        if (threadIdx.x < kWarpSize) {
            const uint64_t leastOfUnit =
                    leastOfWarp(ofWarps<kWarps>(leastOfWarps, kNoEntry));
            if (threadIdx.x == 0) {
                out.least[int64_t(row) * out.groups + unit] = leastOfUnit;
            }
        }
        __syncthreads();
    }
}

} // namespace faiss_bits
