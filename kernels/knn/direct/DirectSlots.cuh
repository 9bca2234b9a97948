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

/// pairDistance() of a vector whose number is on its way: what does not wait
/// for it comes first, and a row of 128 dimensions is one wait. A lane that has
/// no vector, -1, takes part without a pair.
template <Metric kMetric, class T>
__device__ __forceinline__ double slotsDistance(
        const CertifiedParams& search,
        int32_t vector,
        const float* query) {
    using Terms = canonical::Terms<kMetric>;
    constexpr int kAhead = 16; // loads in flight
    const int lane = threadIdx.x % kPairLanes;
    const int64_t step = search.vectors.columnStride;
    const T* x = static_cast<const T*>(search.vectors.data) +
            int64_t(max(vector, 0)) * search.vectors.rowStride;
    double sums[Terms::kSums] = {};
    for (int begin = lane; begin < search.d; begin += kPairLanes * kAhead) {
        float qs[kAhead];
        float xs[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int c = begin + i * kPairLanes;
            qs[i] = c < search.d ? query[c] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int c = begin + i * kPairLanes;
            xs[i] = vector >= 0 && c < search.d ? toFloat(x[c * step]) : 0.0f;
        }
        // Components beyond d are zeros, which no sum notices.
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            Terms::add(sums, double(xs[i]), double(qs[i]), canonical::Power{});
        }
    }
    // Slots 0 and 4, then 2 and 6 to them, then the odd ones.
#pragma unroll
    for (int j = 0; j < Terms::kSums; ++j) {
#pragma unroll
        for (int distance = kPairLanes / 2; distance >= 1; distance /= 2) {
            const double other = __shfl_xor_sync(kFullWarp, sums[j], distance);
            sums[j] = Terms::join(sums[j], other);
        }
    }
    return Terms::finish(sums);
}

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
    const bool isFirst = threadIdx.x % kPairLanes == 0;
    for (uint32_t unit = blockIdx.x; unit < out.groups; unit += gridDim.x) {
        const int64_t place =
                int64_t(unit) * kDirectUnit + threadIdx.x / kPairLanes;
        const int32_t vector = directVector(search, out, place);
        const double distance =
                slotsDistance<kMetric, T>(search, vector, query);
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
