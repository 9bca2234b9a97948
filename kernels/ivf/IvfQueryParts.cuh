/// Queries as the lanes that compute a pair take them. A lane has one slot of
/// the canonical sums, every eighth component; rows are arranged so that it
/// gets four of its components by one load, and a pair's lanes a line of 128
/// bytes.
#pragma once

#include "kernels/ivf/IvfParams.h"
#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

/// Components of a query for each of the lanes of a pair, which come while the
/// vectors are still on their way.
struct PartOfQuery {
    static constexpr int kCount = 16;
    static constexpr int kDims = kCount * kPairLanes;
    static constexpr int kLoadDims = 4 * kPairLanes; // of a load by all lanes
    static_assert(kDims == kIvfArrangedStep);

    /// Of component begin + lane of the row, and every eighth from there on.
    float values[kCount];

    /// Components begin and on of an arranged row, of those below d; begin is a
    /// multiple of kDims.
    __device__ __forceinline__ void load(
            const float* arranged,
            int begin,
            int d) {
        const auto* from = reinterpret_cast<const float4*>(arranged + begin) +
                threadIdx.x % kPairLanes;
#pragma unroll
        for (int i = 0; i < kCount / 4; ++i) {
            const float4 four = begin + i * kLoadDims < d ? from[i * kPairLanes]
                                                          : float4{0, 0, 0, 0};
            values[4 * i] = four.x;
            values[4 * i + 1] = four.y;
            values[4 * i + 2] = four.z;
            values[4 * i + 3] = four.w;
        }
    }

    /// The component that an arranged row has at a place.
    __device__ __forceinline__ static int componentAt(int place) {
        const int ofLane = place / kLoadDims * 4 + place % 4;
        return ofLane * kPairLanes + place % kLoadDims / 4;
    }
};

} // namespace faiss_bits
