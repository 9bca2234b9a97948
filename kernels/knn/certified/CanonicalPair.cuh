/// Canonical distances of pairs, by eight lanes each.
#pragma once

#include "kernels/canonical/Distance.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"
#include "kernels/knn/certified/CertifiedParams.h"

namespace faiss_bits {

/// Lanes that compute a pair: one for each slot of the sums.
constexpr int kPairLanes = canonical::kSlots;

/// isSimilarity() for kernels.
template <Metric kMetric>
constexpr bool kIsSimilarity = isSimilarity(kMetric);

/// The distance of query q and the vector whose component c is x(c); the eight
/// lanes of a group get it. A group with d = 0 takes part without a pair. All
/// lanes of the warp call it.
template <Metric kMetric, class Vector>
__device__ __forceinline__ double pairDistance(
        const Vector& x,
        const float* q,
        int d,
        const canonical::Power& power) {
    using Terms = canonical::Terms<kMetric>;
    constexpr int kAhead = 8; // loads in flight
    const int lane = threadIdx.x % kPairLanes;
    double sums[Terms::kSums] = {};
    for (int begin = lane; begin < d; begin += kPairLanes * kAhead) {
        float xs[kAhead];
        float qs[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int c = begin + i * kPairLanes;
            xs[i] = c < d ? x(c) : 0.0f;
            qs[i] = c < d ? q[c] : 0.0f;
        }
        // Components beyond d are zeros, which no sum notices.
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            Terms::add(sums, double(xs[i]), double(qs[i]), power);
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

/// The same of a vector x in memory.
template <Metric kMetric, class T>
__device__ __forceinline__ double pairDistance(
        const T* x,
        int64_t columnStride,
        const float* q,
        int d,
        const canonical::Power& power) {
    return pairDistance<kMetric>(
            [&](int c) { return toFloat(x[c * columnStride]); }, q, d, power);
}

/// Calls body(vectors) with the vectors as an array of their type.
template <class Body>
__device__ __forceinline__ void withVectors(
        const VectorsParams& vectors,
        const Body& body) {
    switch (vectors.type) {
        case DataType::Float32:
            return body(static_cast<const float*>(vectors.data));
        case DataType::Float16:
            return body(static_cast<const __half*>(vectors.data));
        case DataType::BFloat16:
            return body(static_cast<const __nv_bfloat16*>(vectors.data));
    }
}

/// The entry of a distance: nearer ones are less. NaN is none.
template <Metric kMetric>
__device__ __forceinline__ uint64_t
distanceEntry(double distance, uint32_t column) {
    const float rounded = canonical::toFloat32(distance);
    const float key = kIsSimilarity<kMetric> ? 0.0f - rounded : rounded;
    return key != key ? kNoEntry : makeEntry(orderedKey(key), column);
}

/// The distance of an entry.
template <Metric kMetric>
__device__ __forceinline__ float entryDistance(uint64_t entry) {
    const float key = keyValue(entryKey(entry));
    return kIsSimilarity<kMetric> ? 0.0f - key : key;
}

/// Writes one place of a row's result; kNoEntry is an empty one.
template <Metric kMetric>
__device__ __forceinline__ void writePlace(
        const CertifiedParams& params,
        uint32_t row,
        int place,
        uint64_t entry) {
    constexpr float kMost = 3.402823466e+38f;
    const bool empty = entry == kNoEntry;
    const int64_t at = int64_t(row) * params.k + place;
    params.outDistances[at] = !empty ? entryDistance<kMetric>(entry)
            : kIsSimilarity<kMetric> ? -kMost
                                     : kMost;
    const int64_t id = empty ? -1 : int64_t(entryColumn(entry));
    if (params.ids64) {
        static_cast<int64_t*>(params.outIds)[at] = id;
    } else {
        static_cast<int32_t*>(params.outIds)[at] = int32_t(id);
    }
}

} // namespace faiss_bits
