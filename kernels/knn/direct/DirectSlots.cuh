/// The same keys as DirectScan.cuh for so few pairs that the wait for memory is
/// all of the time: eight lanes a pair, a slot each, so that a row of many
/// dimensions is a few waits.
#pragma once

#include "kernels/device/WarpReduce.cuh"
#include "kernels/knn/certified/JoinSlots.cuh"
#include "kernels/knn/direct/DirectVector.cuh"

namespace faiss_bits {

constexpr int kDirectSlotsThreads = 256;
static_assert(kDirectSlotsThreads / kPairLanes == kDirectUnit);

/// Components that a pair's lanes have on their way at a time: a row of 128
/// dimensions is one wait.
constexpr int kDirectSlotsDims = 16 * kPairLanes;

/// pairDistance() of a query that is in shared memory already, with zeros
/// behind. A lane that has no vector, -1, takes part without a pair.
template <Metric kMetric, class T>
__device__ __forceinline__ double slotsDistance(
        const CertifiedParams& search,
        int32_t vector,
        const double* query) {
    using Terms = canonical::Terms<kMetric>;
    constexpr int kAhead = kDirectSlotsDims / kPairLanes;
    const int lane = threadIdx.x % kPairLanes;
    const int64_t step = search.vectors.columnStride;
    const T* x = static_cast<const T*>(search.vectors.data) +
            int64_t(max(vector, 0)) * search.vectors.rowStride;
    double sums[Terms::kSums] = {};
    for (int begin = lane; begin < search.d; begin += kDirectSlotsDims) {
        float xs[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int c = begin + i * kPairLanes;
            xs[i] = vector >= 0 && c < search.d ? toFloat(x[c * step]) : 0.0f;
        }
        // Components beyond d are zeros, which no sum notices.
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            if (i % 8 == 0 && begin - lane + i * kPairLanes >= search.d) {
                break;
            }
            Terms::add(
                    sums,
                    double(xs[i]),
                    query[begin + i * kPairLanes],
                    canonical::Power{});
        }
    }
    joinSlots<Terms>(sums);
    return Terms::finish(sums);
}

/// Of a query in shared memory: whole steps.
BITS_HOST_DEVICE constexpr int directSlotsPadded(int d) {
    return (d + kDirectSlotsDims - 1) / kDirectSlotsDims * kDirectSlotsDims;
}

/// A block a unit (x) and query (y); groups are units.
template <Metric kMetric, class T>
__global__ __launch_bounds__(kDirectSlotsThreads, 4) void directSlotsKernel(
        const __grid_constant__ DirectScanParams params) {
    constexpr int kWarps = kDirectSlotsThreads / kWarpSize;
    __shared__ uint64_t leastOfWarps[kWarps];
    extern __shared__ __align__(16) double query[]; // directSlotsPadded(d)
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const DirectKeys& out = params.out;
    const uint32_t unit = blockIdx.x;
    const uint32_t row = blockIdx.y;
    const int64_t place =
            int64_t(unit) * kDirectUnit + threadIdx.x / kPairLanes;
    const int32_t vector = directVector(search, out, place);
    // Comes while the vector's number does. Once for all lanes in float64: a
    // conversion takes as long as four operations.
    const float* from = search.queries + int64_t(row) * search.d;
    for (int c = threadIdx.x; c < directSlotsPadded(search.d);
         c += kDirectSlotsThreads) {
        query[c] = c < search.d ? double(from[c]) : 0.0;
    }
    __syncthreads();
    const double distance = slotsDistance<kMetric, T>(search, vector, query);
    const uint64_t entry = vector >= 0
            ? distanceEntry<kMetric>(distance, uint32_t(vector))
            : kNoEntry;
    const bool isFirst = threadIdx.x % kPairLanes == 0;
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
    if (out.least && threadIdx.x < kWarpSize) {
        const uint64_t least =
                leastOfWarp(ofWarps<kWarps>(leastOfWarps, kNoEntry));
        if (threadIdx.x == 0) {
            out.least[int64_t(row) * out.groups + unit] = least;
        }
    }
}

} // namespace faiss_bits
