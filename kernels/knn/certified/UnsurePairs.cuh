/// The pairs of a tile of products whose bounds do not round to one float32:
/// their number, and their canonical distances.
#pragma once

#include "kernels/knn/certified/ProductPlaces.cuh"
#include "kernels/knn/certified/TileVectors.cuh"

namespace faiss_bits {

/// Threads have a bit for each of theirs, as ProductPlaces::bitOf.
template <Metric kMetric, int Across, class Vectors>
struct UnsurePairs {
    using Places = ProductPlaces<Across>;
    using Params = typename Vectors::Params;
    /// What they are counted in: a warp has one a lane at most.
    static constexpr int kUnit = Places::kSums;

    const Params& params;
    uint16_t* pairs;   // in shared memory: query * kVectors + vector
    uint32_t* ofWarps; // in shared memory: how many, of each warp

    /// The unsure pairs of the block in units of a warp, the same in all
    /// threads. Begins and ends with the block in step.
    __device__ __forceinline__ int count(uint64_t unsure) const {
        const int ofWarp = __reduce_add_sync(kFullWarp, __popcll(unsure));
        if (Places::lane() == 0) {
            ofWarps[threadIdx.x / kWarpSize] = ofWarp;
        }
        return __syncthreads_count(Places::lane() * kUnit < ofWarp);
    }

    /// Canonical distances of the pairs whose bits are set, no more than there
    /// is room for, by eight lanes each: behind count(). All pairs of the
    /// block are dealt out, as one warp may have most. Ends with the block in
    /// step.
    template <class Visit>
    __device__ __forceinline__ void settle(
            const TilePlace& place,
            uint64_t unsure,
            const Visit& visit) const {
        const int warp = threadIdx.x / kWarpSize;
        const int mine = __popcll(unsure);
        int at = mine; // where this lane's begin
#pragma unroll
        for (int distance = 1; distance < kWarpSize; distance *= 2) {
            const int other = __shfl_up_sync(kFullWarp, at, distance);
            at += Places::lane() >= distance ? other : 0;
        }
        at -= mine;
        int count = 0; // of the block
#pragma unroll
        for (int w = 0; w < Places::kThreads / kWarpSize; ++w) {
            const int ofWarp = ofWarps[w];
            at += w < warp ? ofWarp : 0;
            count += ofWarp;
        }
        for (; unsure != 0; unsure &= unsure - 1, ++at) {
            const int bit = __ffsll(unsure) - 1;
            const int r = bit % 4;
            pairs[at] = uint16_t(
                    Places::query(bit / (4 * Places::kAcross), r) *
                            Places::kVectors +
                    Places::vector(bit / 4 % Places::kAcross, r));
        }
        // What a visitor wrote of a pair that is not sure is behind it, too.
        __syncthreads();
        constexpr int kGroups = Places::kThreads / kPairLanes;
        for (int first = 0; first < count; first += kGroups) {
            const int i = first + int(threadIdx.x) / kPairLanes;
            // A group without a pair has that of another.
            const int pair = pairs[min(i, count - 1)];
            const int q = pair / Places::kVectors;
            const int v = pair % Places::kVectors;
            double distance = 0;
            Vectors::with(params, [&](const auto& vectors) {
                distance = pairDistance<kMetric>(
                        vectors.vector(place, v),
                        params.queries + place.row(q) * params.d,
                        params.d,
                        params.power);
            });
            if (i < count && Places::lane() % kPairLanes == 0) {
                const float values[] = {canonical::toFloat32(distance)};
                visit(q, v, values, 1u);
            }
        }
        __syncthreads();
    }
};

} // namespace faiss_bits
