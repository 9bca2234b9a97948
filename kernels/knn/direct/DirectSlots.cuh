/// The same keys as DirectScan.cuh for so few pairs that the wait for memory is
/// all of the time: eight lanes a pair, a slot each, so that a row of many
/// dimensions is a few waits. Of more blocks than run at once each has several
/// queries, which share what is read and widened.
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

/// Several queries of so many dimensions take 64 KiB of shared memory.
constexpr int kMostDimsOfSlots = 2048;

/// Of a query in shared memory: whole steps.
BITS_HOST_DEVICE constexpr int directSlotsPadded(int d) {
    return (d + kDirectSlotsDims - 1) / kDirectSlotsDims * kDirectSlotsDims;
}

/// pairDistance() of queries that are in shared memory already, with zeros
/// behind, directSlotsPadded(d) apart. A lane that has no vector, -1, takes
/// part without a pair.
template <Metric kMetric, int kQueries, class T>
__device__ __forceinline__ void slotsDistances(
        const CertifiedParams& search,
        int32_t vector,
        const double* queries,
        double (&distances)[kQueries]) {
    using Terms = canonical::Terms<kMetric>;
    constexpr int kAhead = kDirectSlotsDims / kPairLanes;
    const int lane = threadIdx.x % kPairLanes;
    const int64_t step = search.vectors.columnStride;
    const int padded = directSlotsPadded(search.d);
    const T* x = static_cast<const T*>(search.vectors.data) +
            int64_t(max(vector, 0)) * search.vectors.rowStride;
    double sums[kQueries][Terms::kSums] = {};
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
            const double value = xs[i];
#pragma unroll
            for (int q = 0; q < kQueries; ++q) {
                Terms::add(
                        sums[q],
                        value,
                        queries[q * padded + begin + i * kPairLanes],
                        canonical::Power{});
            }
        }
    }
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
        joinSlots<Terms>(sums[q]);
        distances[q] = Terms::finish(sums[q]);
    }
}

/// A block a unit (x) and kQueries queries (y); groups are units.
template <Metric kMetric, int kQueries, class T>
__global__ __launch_bounds__(
        kDirectSlotsThreads,
        kQueries == 1
                ? 4
                : 2) void directSlotsKernel(const __grid_constant__
                                                    DirectScanParams params) {
    constexpr int kWarps = kDirectSlotsThreads / kWarpSize;
    __shared__ uint64_t leastOfWarps[kQueries][kWarps];
    // [kQueries, directSlotsPadded(d)]
    extern __shared__ __align__(16) double queries[];
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const DirectKeys& out = params.out;
    const uint32_t unit = blockIdx.x;
    const uint32_t row = blockIdx.y * kQueries;
    const int rows = int(min(uint32_t(kQueries), search.rows - row));
    const int64_t place =
            int64_t(unit) * kDirectUnit + threadIdx.x / kPairLanes;
    const int32_t vector = directVector(search, out, place);
    // Comes while the vector's number does. Once for all lanes in float64: a
    // conversion takes as long as four operations.
    const int padded = directSlotsPadded(search.d);
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
        const float* from = search.queries + int64_t(row + q) * search.d;
        for (int c = threadIdx.x; c < padded; c += kDirectSlotsThreads) {
            queries[q * padded + c] =
                    q < rows && c < search.d ? double(from[c]) : 0.0;
        }
    }
    __syncthreads();
    double distances[kQueries];
    slotsDistances<kMetric, kQueries, T>(search, vector, queries, distances);
    const bool isFirst = threadIdx.x % kPairLanes == 0;
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
        const uint64_t entry = vector >= 0
                ? distanceEntry<kMetric>(distances[q], uint32_t(vector))
                : kNoEntry;
        if (isFirst && q < rows) {
            out.keys[int64_t(row + q) * out.stride + place] = entryKey(entry);
        }
        if (out.least) {
            const uint64_t least = leastOfWarp(entry);
            if (threadIdx.x % kWarpSize == 0) {
                leastOfWarps[q][threadIdx.x / kWarpSize] = least;
            }
        }
    }
    // One number a block: one address takes a while for thousands.
    const int present = __syncthreads_count(isFirst && vector >= 0);
    if (search.numRescored && threadIdx.x == 0 && present > 0) {
        atomicAdd(search.numRescored, (unsigned long long)(present * rows));
    }
    if (out.least && threadIdx.x < kWarpSize) {
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            const uint64_t least =
                    leastOfWarp(ofWarps<kWarps>(leastOfWarps[q], kNoEntry));
            if (threadIdx.x == 0 && q < rows) {
                out.least[int64_t(row + q) * out.groups + unit] = least;
            }
        }
    }
}

} // namespace faiss_bits
