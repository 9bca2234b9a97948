/// Canonical keys of single vectors of codes, for a block that has one query.
#pragma once

#include "kernels/ivf/IvfBoundedScans.h"
#include "kernels/ivf/IvfDirectSums.cuh"
#include "kernels/ivf/IvfFloors.h"
#include "kernels/knn/certified/JoinSlots.cuh"

namespace faiss_bits {

/// Of codes of lists that hasIvfCodeFloors() or hasIvfBookTables(): rows of
/// bytes, of parts of a power of two; or interleaved. kThreads: of the block.
template <Metric kMetric, ListCoding kCoding, int kThreads>
struct IvfFloorsKeys {
    using Terms = canonical::Terms<kMetric>;
    static constexpr bool kIsProduct = kCoding == ListCoding::Product;
    static_assert(kIsProduct || kCoding == ListCoding::Scalar8);
    static_assert(kThreads >= kMostFloorDims); // a step a thread
    static_assert(kMostBookTableDims >= kMostFloorDims);

    struct SharedStorage {
        double query[kMostBookTableDims];
        float2 steps[kMostFloorDims]; // of scalar codes: a step and a start
    };

    /// What is read before a block waits for something else.
    struct Ahead {
        IvfQueryAhead<kThreads> query;
        bool hasStep;
        float2 step = {0, 0};

        __device__ __forceinline__ Ahead(const IvfParams& search, uint32_t row)
                : query(search, row),
                  hasStep(!kIsProduct && int(threadIdx.x) < search.d) {
            if (hasStep) {
                step = {search.steps[threadIdx.x], search.starts[threadIdx.x]};
            }
        }

        __device__ __forceinline__ void write(SharedStorage& shared) const {
            query.write(shared.query, kMostBookTableDims);
            if (hasStep) {
                shared.steps[threadIdx.x] = step;
            }
        }
    };

    const SharedStorage& shared;
    const IvfParams& search;

    /// The key of a vector of a list, by eight lanes, in all of them; by all
    /// lanes of the warp. codes: the list's.
    __device__ __forceinline__ uint32_t
    of(uint32_t list, const uint8_t* codes, uint32_t vector) const {
        double sums[1] = {slotOf(list, codes, vector)};
        joinSlots<Terms>(sums);
        return entryKey(distanceEntry<kMetric>(Terms::finish(sums), 0));
    }

   private:
    /// A slot's sum. All codes come in one wait; rows of the codebook in
    /// another, and centroids in either.
    __device__ __forceinline__ double slotOf(
            uint32_t list,
            const uint8_t* codes,
            uint32_t vector) const {
        constexpr int kAhead = 16;
        constexpr int kStep = kAhead * kPairLanes;
        const ListDecoding& decoding = search.lists.decoding;
        const int lane = int(threadIdx.x % kPairLanes);
        const int d = search.d;
        const int logDims = kIsProduct ? 31 - __clz(d / decoding.numParts) : 0;
        // Of a component and the one that is kPairLanes behind it.
        const int ofTwo = kIsProduct ? 2 * kPairLanes >> logDims : 0; // codes
        const int less = 2 * kPairLanes >> logDims == 1
                ? (kIvfCodebookRows - 1) * kPairLanes
                : 0;
        codes += kIsProduct ? int64_t(vector) * decoding.numParts
                            : int64_t(vector / kListGroup) * d * kListGroup +
                        vector % kListGroup;
        const float* centroid = decoding.centroids
                ? decoding.centroids + int64_t(list) * d
                : nullptr;
        double sums[1] = {};
#pragma unroll 1
        for (int begin = lane; begin < d; begin += kStep) {
            uint32_t some[kAhead];
            float centers[kAhead];
            float xs[kAhead];
            const uint8_t* from = codes +
                    (kIsProduct ? begin >> logDims : begin * int(kListGroup));
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                const int c = begin + i * kPairLanes;
                const int at = kIsProduct ? i * ofTwo / 2
                                          : i * kPairLanes * int(kListGroup);
                some[i] = c < d ? __ldg(from + at) : 0;
                if constexpr (!kIsProduct) {
                    centers[i] = c < d && centroid ? __ldg(centroid + c) : 0.0f;
                }
            }
            // Of its first part; rows of a part lie side by side.
            const float* rows = decoding.codebook +
                    ((begin >> logDims) * kIvfCodebookRows << logDims) +
                    (begin & ((1 << logDims) - 1));
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                const int c = begin + i * kPairLanes;
                xs[i] = 0;
                if constexpr (kIsProduct) {
                    centers[i] = 0;
                }
                if (c < d) {
                    if constexpr (kIsProduct) {
                        centers[i] = centroid ? __ldg(centroid + c) : 0.0f;
                        const int at = i * kPairLanes * kIvfCodebookRows -
                                i % 2 * less;
                        xs[i] = __ldg(rows + at + (int(some[i]) << logDims));
                    } else {
                        const float2 step = shared.steps[c];
                        xs[i] = __fmaf_rn(float(some[i]), step.x, step.y);
                    }
                }
            }
            // Behind the last component all are zeros, which no sum notices;
            // nor does it notice 0 for -0, where there is no centroid.
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                Terms::add(
                        sums,
                        double(__fadd_rn(xs[i], centers[i])),
                        shared.query[begin + i * kPairLanes],
                        search.power);
            }
        }
        return sums[0];
    }
};

} // namespace faiss_bits
