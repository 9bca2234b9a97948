/// Estimates of the keys of all vectors of the lists of some queries, of
/// interleaved float32, list by list: what is read of a list serves up to four
/// of the queries that probe it. IvfFloatBound.h says how far they may be from
/// the keys.
///
/// A warp has a tile, and a lane a vector: nothing is exchanged, and nothing
/// waits for other warps.
///
/// Bound by: the reading of the lists that any query probes. A group of 32
/// vectors of 128 dimensions, 16 KB, takes 430 instructions with one query and
/// 1,300 with four, at least 110 and 330 cycles; to read it takes a
/// multiprocessor 840 at 4.5 TB/s.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfBoundedScans.h"
#include "kernels/ivf/IvfDirectSums.cuh"
#include "kernels/ivf/IvfFloatBound.h"
#include "kernels/ivf/IvfTileOrder.cuh"

namespace faiss_bits {

template <Metric kMetric>
struct IvfFloatScan {
    using Order = IvfTileOrder<kIvfFloatQueries, kIvfFloatVectors>;
    static constexpr int kThreads = kIvfFloatThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr int kAhead = kIvfFloatAhead; // components on their way
    static constexpr int kSums = 4;
    static constexpr bool kIsL2 = kMetric == Metric::L2;

    const IvfDirectParams& params;
    float* queries; // [kIvfFloatQueries, padded], of this warp
    int padded;     // components, with zeros behind: whole steps

    __device__ __forceinline__ void run() const {
        const Order order{params.search};
        const uint32_t tiles = order.numTiles();
        // So that few tiles are spread over all multiprocessors.
        for (uint32_t t = threadIdx.x / kWarpSize * gridDim.x + blockIdx.x;
             t < tiles;
             t += gridDim.x * kWarps) {
            const IvfWork work = order.workOf(t, tiles);
            const int count =
                    int(min(work.place.numRows, uint32_t(kIvfFloatQueries)));
            __syncwarp(); // all have left the tile before
            loadQueries(work, count);
            __syncwarp();
            switch (count) {
                case 1:
                    runTile<1>(work);
                    break;
                case 2:
                    runTile<2>(work);
                    break;
                case 3:
                    runTile<3>(work);
                    break;
                default:
                    runTile<4>(work);
            }
        }
    }

   private:
    __device__ __forceinline__ void loadQueries(const IvfWork& work, int count)
            const {
        const IvfParams& search = params.search;
        const int lane = int(threadIdx.x % kWarpSize);
        for (int q = 0; q < count; ++q) {
            const float* from =
                    search.queries + int64_t(work.place.rows[q]) * search.d;
#pragma unroll 4
            for (int c = lane; c < padded; c += kWarpSize) {
                queries[q * padded + c] = c < search.d ? from[c] : 0.0f;
            }
        }
    }

    template <int kCount>
    __device__ __forceinline__ void runTile(const IvfWork& work) const {
        static_assert(kCount <= kIvfFloatQueries && kIvfFloatQueries == 4);
        const IvfParams& search = params.search;
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t first = uint32_t(work.place.first);
        const uint32_t length = uint32_t(work.place.last);
        const uint32_t end = min(first + kIvfFloatVectors, length);
        float sizes[kCount] = {}; // the greatest
        const auto selectedAt = [&](uint32_t begin) {
            return begin < end ? selectedWord(
                                         search.lists,
                                         work.place.listNumber,
                                         begin / kListGroup)
                               : 0;
        };
        // What comes next is on its way. Where none of a group is selected,
        // nothing is read.
        float next[kAhead];
        uint32_t selected = selectedAt(first);
        if (selected != 0) {
            load(work.place, first, 0, next);
        }
        for (uint32_t begin = first; begin < end; begin += kListGroup) {
            const bool isThere =
                    begin + lane < length && (selected >> lane & 1);
            const uint32_t after = selectedAt(begin + kListGroup);
            float sums[kCount] = {};
            if (selected != 0) {
                add<kCount>(
                        work.place, begin, after, isThere, next, sums, sizes);
            } else if (after != 0) {
                load(work.place, begin + kListGroup, 0, next);
            }
            selected = after;
#pragma unroll
            for (int q = 0; q < kCount; ++q) {
                uint32_t key = orderedKey(kIsL2 ? sums[q] : 0.0f - sums[q]);
                if (!kIsL2 && isThere && !(fabsf(sums[q]) <= 0x1.fffffep127f)) {
                    // It may be the nearest: the row has no limit.
                    key = 0;
                    sizes[q] = NAN;
                }
                keepIvfKey<kMetric>(
                        params,
                        work.place.rows[q],
                        (work.columns[q] + begin) / kListGroup,
                        key,
                        isThere);
            }
        }
        if constexpr (!kIsL2) {
#pragma unroll
            for (int q = 0; q < kCount; ++q) {
                // None is negative; what is no number is greater than all.
                const float bound = ivf_float::boundOf(sizes[q], search.d);
                const uint32_t most = __reduce_max_sync(
                        kFullWarp, __float_as_uint(bound) & 0x7fffffff);
                if (lane == 0) {
                    atomicMax(&params.bounds[2 * work.place.rows[q] + 1], most);
                }
            }
        }
    }

    /// Components c and on of a lane's vector, zeros behind the last.
    __device__ __forceinline__ void load(
            const TilePlace& place,
            uint32_t begin,
            int c,
            float (&xs)[kAhead]) const {
        const int d = params.search.d;
        // Groups are whole: what pads a list can be read.
        const float* from = static_cast<const float*>(place.list) +
                int64_t(begin) * d + c * int(kListGroup) +
                threadIdx.x % kWarpSize;
        if (c + kAhead <= d) {
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                xs[i] = from[i * kListGroup];
            }
        } else {
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                xs[i] = c + i < d ? from[i * kListGroup] : 0.0f;
            }
        }
    }

    /// The sums of 32 vectors, a lane each, of which `next` has the first
    /// components; then it has those of the next 32, if `after` has bits.
    template <int kCount>
    __device__ __forceinline__ void add(
            const TilePlace& place,
            uint32_t begin,
            uint32_t after,
            bool isThere,
            float (&next)[kAhead],
            float (&out)[kCount],
            float (&greatest)[kCount]) const {
        const int d = params.search.d;
        float sums[kCount][kSums] = {};
        float sizes[kCount] = {};
        for (int c = 0; c < d; c += kAhead) {
            float xs[kAhead];
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                xs[i] = next[i];
            }
            if (c + kAhead < d) {
                load(place, begin, c + kAhead, next);
            } else if (after != 0) {
                load(place, begin + kListGroup, 0, next);
            }
#pragma unroll
            for (int i = 0; i < kAhead; i += kSums) {
#pragma unroll
                for (int q = 0; q < kCount; ++q) {
                    const float4 four = *reinterpret_cast<const float4*>(
                            queries + q * padded + c + i);
                    const float of[kSums] = {four.x, four.y, four.z, four.w};
#pragma unroll
                    for (int j = 0; j < kSums; ++j) {
                        const float x = xs[i + j];
                        if constexpr (kIsL2) {
                            const float off = __fsub_rn(x, of[j]);
                            sums[q][j] = __fmaf_rn(off, off, sums[q][j]);
                        } else {
                            sums[q][j] = __fmaf_rn(x, of[j], sums[q][j]);
                            sizes[q] =
                                    __fmaf_rn(fabsf(x), fabsf(of[j]), sizes[q]);
                        }
                    }
                }
            }
        }
#pragma unroll
        for (int q = 0; q < kCount; ++q) {
            out[q] = (sums[q][0] + sums[q][1]) + (sums[q][2] + sums[q][3]);
            // What is no number stays, by its bits.
            if (!kIsL2 && isThere) {
                greatest[q] = __uint_as_float(
                        max(__float_as_uint(greatest[q]) & 0x7fffffff,
                            __float_as_uint(sizes[q]) & 0x7fffffff));
            }
        }
    }
};

template <Metric kMetric>
__global__ __launch_bounds__(
        kIvfFloatThreads,
        kIvfFloatBlocks) void ivfFloatScanKernel(const __grid_constant__
                                                         IvfDirectParams
                                                                 params) {
    extern __shared__ __align__(16) float ivfFloatQueries[];
    allowNext();
    waitForPrevious();
    const int padded = ivfFloatPadded(params.search.d);
    float* mine = ivfFloatQueries +
            threadIdx.x / kWarpSize * (kIvfFloatQueries * padded);
    IvfFloatScan<kMetric>{params, mine, padded}.run();
}

template <Metric kMetric>
void launchIvfFloatScan(
        const IvfDirectParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    const auto kernel = ivfFloatScanKernel<kMetric>;
    launchAfterPrevious(
            kernel,
            dim3(unsigned(multiprocessors * kIvfFloatBlocks)),
            kIvfFloatThreads,
            allowSharedBytes(kernel, ivfFloatSharedBytes(params.search.d)),
            stream,
            params);
}

} // namespace faiss_bits
