/// From the distance of a tile to the canonical one.
#pragma once

#include "kernels/knn/certified/ScanTile.cuh"

namespace faiss_bits {

/// The canonical distance of a pair by one thread, for those that are seldom.
template <Metric kMetric>
__device__ __noinline__ double canonicalOfThread(
        const CertifiedParams& search,
        uint32_t row,
        int64_t vector) {
    using Terms = canonical::Terms<kMetric>;
    const float* q = search.queries + int64_t(row) * search.d;
    double sums[Terms::kSums][canonical::kSlots] = {};
    withVectors(search.vectors, [&](const auto* data) {
        const auto* x = data + vector * search.vectors.rowStride;
        for (int begin = 0; begin < search.d; begin += canonical::kSlots) {
#pragma unroll
            for (int s = 0; s < canonical::kSlots; ++s) {
                double slot[Terms::kSums];
                const int64_t c = begin + s;
                if (c < search.d) {
#pragma unroll
                    for (int j = 0; j < Terms::kSums; ++j) {
                        slot[j] = sums[j][s];
                    }
                    Terms::add(
                            slot,
                            double(toFloat(x[c * search.vectors.columnStride])),
                            double(q[c]),
                            search.power);
#pragma unroll
                    for (int j = 0; j < Terms::kSums; ++j) {
                        sums[j][s] = slot[j];
                    }
                }
            }
        }
    });
    return canonical::joinSlots<Terms>(sums);
}

/// What a tile found for a query and a vector, or where that may be rounded to
/// another float32 than the canonical distance, the canonical distance. NaN is.
template <Metric kMetric>
__device__ __forceinline__ double scannedDistance(
        const CertifiedParams& search,
        uint32_t row,
        int64_t vector,
        double distance) {
    if constexpr (!ScanTerms<kMetric>::kExact) {
        const double error =
                distance * ScanTerms<kMetric>::relativeError(search.d);
        if (canonical::toFloat32(distance - error) !=
                    canonical::toFloat32(distance + error) &&
            distance == distance) {
            return canonicalOfThread<kMetric>(search, row, vector);
        }
    }
    return distance;
}

} // namespace faiss_bits
