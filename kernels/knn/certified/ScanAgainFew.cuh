/// What ScanAgain does for few slots: eight lanes a vector, whose components
/// are read once for some of the queries. Included by ScanAgain.cuh.
#pragma once

#include "kernels/knn/certified/LongTerms.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Whether slots are so few that each vector is met with them by eight lanes.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::areFew(
        uint32_t used) const {
    // Vectors whose components are apart are read again for every slot.
    constexpr uint32_t kFewApart = 8;
    return used <= (params.search.vectors.columnStride == 1 ? kFewSlots<kMetric>
                                                            : kFewApart);
}

/// Chunks `begin` to begin + count.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::scanFew(
        uint32_t begin,
        uint32_t count,
        uint32_t used) {
    if (kHasLongTerms<kMetric> || params.search.vectors.columnStride != 1) {
        scanSingly(begin, count, used);
        return;
    }
    if constexpr (!kHasLongTerms<kMetric>) {
        constexpr uint32_t kTogether = kFewTogether<kMetric>;
        static_assert(kTogether <= 2);
        // Where there are few chunks, blocks share them.
        constexpr uint32_t kFewOfBlock = 4;
        const uint32_t parts = count < kFewOfBlock * gridDim.x
                ? (used + kTogether - 1) / kTogether
                : 1;
        for (uint32_t i = blockIdx.x; i < count * parts; i += gridDim.x) {
            const int64_t first = chunkAt(begin + i / parts);
            if (isBehind(first, 0)) {
                continue;
            }
            for (uint32_t s = i % parts * kTogether; s < used;
                 s += parts * kTogether) {
                if (kTogether > 1 && s + 1 < used) {
                    scanChunk<kTogether>(first, s, used);
                } else {
                    scanChunk<1>(first, s, used);
                }
            }
        }
    }
}

/// The vectors of a chunk, which have their components side by side, and
/// the slots from s on.
template <Metric kMetric, class Begin>
template <int kQueries>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::scanChunk(
        int64_t first,
        uint32_t s,
        uint32_t used) {
    constexpr int kGroups = kThreads / kPairLanes;
    constexpr int kVectors = kChunk / kGroups; // of a group
    static_assert(kVectors * kGroups == kChunk && kVectors <= kPairLanes);
    const CertifiedParams& search = params.search;
    const int64_t own = first + threadIdx.x / kPairLanes;
    const float* queries[kQueries];
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
        queries[q] = search.queries +
                int64_t(shared.rows[min(s + q, used - 1)]) * search.d;
    }
    withVectors(search.vectors, [&](const auto* data) {
        using T = std::remove_cvref_t<decltype(*data)>;
        const T* vectors[kVectors];
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            vectors[v] = data +
                    min(own + v * kGroups, search.n - 1) *
                            search.vectors.rowStride;
        }
        FewQueryDistances<kMetric, kVectors, kQueries>::run(
                vectors,
                queries,
                search.d,
                search.power,
                [&](int v, int q, double distance) {
                    const int64_t vector = own + v * kGroups;
                    if (vector < search.n && s + q < used) {
                        append(s + q, vector, canonical::toFloat32(distance));
                    }
                });
    });
}

/// The same, a vector of each group and a slot at a time.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::scanSingly(
        uint32_t begin,
        uint32_t count,
        uint32_t used) {
    const CertifiedParams& search = params.search;
    constexpr int kGroups = kThreads / kPairLanes;
    constexpr int kParts = (kChunk + kGroups - 1) / kGroups; // of a chunk
    const int group = threadIdx.x / kPairLanes;
    for (uint32_t i = blockIdx.x; i < count * kParts; i += gridDim.x) {
        if (isBehind(chunkAt(begin + i / kParts), 0)) {
            continue;
        }
        const int within = i % kParts * kGroups + group;
        const int64_t vector = chunkAt(begin + i / kParts) + within;
        const bool isThere = within < kChunk && vector < search.n;
        for (uint32_t s = 0; s < used; ++s) {
            double distance = 0;
            withVectors(search.vectors, [&](const auto* data) {
                distance = distanceOfPair<kMetric>(
                        search,
                        data +
                                (isThere ? vector : 0) *
                                        search.vectors.rowStride,
                        search.queries + int64_t(shared.rows[s]) * search.d,
                        search.d);
            });
            if (isThere && threadIdx.x % kPairLanes == 0) {
                append(s, vector, canonical::toFloat32(distance));
            }
        }
    }
}

} // namespace faiss_bits
