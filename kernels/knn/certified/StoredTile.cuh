/// What a tile of products that lie in memory reads of them.
#pragma once

#include "kernels/knn/certified/PairEstimate.cuh"
#include "kernels/knn/certified/ProductPlaces.cuh"
#include "kernels/knn/certified/StoredProducts.h"
#include "kernels/knn/certified/TileVectors.cuh"

namespace faiss_bits {

template <Metric kMetric, int Across>
struct StoredTile {
    using Places = ProductPlaces<Across>;
    static constexpr int kThreads = Places::kThreads;
    static constexpr int kQueries = Places::kQueries;
    static constexpr int kVectors = Places::kVectors;

    /// Of pairs that there are not, whatever lies there, or zeros.
    __device__ __forceinline__ static void load(
            const TilePlace& place,
            const StoredProducts& stored,
            double (&sums)[Places::kDown][Places::kAcross][4]) {
        const int lastQuery = min(int(place.numRows), kQueries) - 1;
#pragma unroll
        for (int a = 0; a < Places::kDown; ++a) {
#pragma unroll
            for (int r = 0; r < 4; r += 2) {
                const int q = min(Places::query(a, r), lastQuery);
                const double* row = stored.products +
                        (place.firstRow + q) * stored.stride + place.first;
#pragma unroll
                for (int b = 0; b < Places::kAcross; b += 2) {
                    const int v = Places::vector(b, r);
                    const bool isThere = place.first + v < stored.stride;
                    const double2 none = {0, 0};
                    const auto* at = reinterpret_cast<const double2*>(row + v);
                    const double2 two = isThere ? __ldcs(at) : none;
                    const double2 more = isThere ? __ldcs(at + 1) : none;
                    sums[a][b][r] = two.x;
                    sums[a][b][r + 1] = two.y;
                    sums[a][b + 1][r] = more.x;
                    sums[a][b + 1][r + 1] = more.y;
                }
            }
        }
    }

    /// To sizes [kVectors + kQueries], as ProductStaging has them. Whether
    /// those that this thread stores are finite.
    __device__ __forceinline__ static bool storeSizes(
            const TilePlace& place,
            const StoredProducts& stored,
            double* sizes) {
        bool allFinite = true;
        for (int i = threadIdx.x; i < kVectors + kQueries; i += kThreads) {
            const int64_t vector = min(place.first + i, place.last - 1);
            const int query =
                    min(i - kVectors, min(int(place.numRows), kQueries) - 1);
            const double square = i < kVectors
                    ? stored.ofVectors[vector]
                    : stored.ofQueries[place.firstRow + query];
            sizes[i] = EstimateRow<kMetric>::sizeOf(square);
            allFinite = allFinite && isfinite(square);
        }
        return allFinite;
    }
};

} // namespace faiss_bits
