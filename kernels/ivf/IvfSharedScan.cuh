/// The keys of all vectors of the lists of some queries, list by list: what is
/// read of a list serves up to four of the queries that probe it; of up to 32
/// dimensions of all but product codes, sixteen queries. Of rows and of
/// float32; IvfStagedSharedScan.cuh has interleaved codes of more dimensions.
///
/// Bound by: the reading of the lists that any query probes; with four queries
/// a list by float64, too, which takes two thirds as long.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfDirectSums.cuh"
#include "kernels/ivf/IvfTileOrder.cuh"

namespace faiss_bits {

template <Metric kMetric, ListCoding kCoding>
struct IvfSharedScan {
    using Sums = IvfDirectSums<kMetric, kCoding>;
    using Order = IvfTileOrder<kIvfSharedQueries, kIvfSharedVectors>;
    static constexpr int kQueries = kIvfSharedQueries;
    static constexpr int kThreads = kIvfDirectThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    static_assert(kWarps == canonical::kSlots && kQueries <= kWarps);

    struct SharedStorage {
        double sums[2][kQueries][kWarps][kWarpSize];
    };
    static constexpr size_t kBytes = sizeof(SharedStorage);

    SharedStorage& shared;
    const IvfDirectParams& params;
    double* queries; // [kQueries, padded], in shared memory
    int padded;

    template <class Vectors>
    __device__ __forceinline__ void run(const Vectors& vectors) {
        const Order order{params.search};
        const uint32_t tiles = order.numTiles();
        for (uint32_t t = blockIdx.x; t < tiles; t += gridDim.x) {
            const IvfWork work = order.workOf(t, tiles);
            const int count = int(min(work.place.numRows, uint32_t(kQueries)));
            __syncthreads(); // all have left the tile before
            for (int i = threadIdx.x; i < count * padded; i += kThreads) {
                const int q = i / padded;
                const int c = i % padded;
                queries[i] = c < params.search.d
                        ? double(params.search.queries
                                         [int64_t(work.place.rows[q]) *
                                                  params.search.d +
                                          c])
                        : 0.0;
            }
            __syncthreads();
            switch (count) {
                case 1:
                    runTile<1>(vectors, work);
                    break;
                case 2:
                    runTile<2>(vectors, work);
                    break;
                case 3:
                    runTile<3>(vectors, work);
                    break;
                default:
                    runTile<4>(vectors, work);
            }
        }
    }

   private:
    template <int kCount, class Vectors>
    __device__ __forceinline__ void runTile(
            const Vectors& vectors,
            const IvfWork& work) {
        static_assert(kCount <= kQueries && kQueries == 4);
        const uint32_t warp = threadIdx.x / kWarpSize;
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t first = uint32_t(work.place.first);
        const uint32_t length = uint32_t(work.place.last);
        const uint32_t end = min(first + kIvfSharedVectors, length);
        uint32_t at = 0;
        for (uint32_t begin = first; begin < end; begin += kListGroup, ++at) {
            const uint32_t selected = selectedWord(
                    params.search.lists,
                    work.place.listNumber,
                    begin / kListGroup);
            double sums[kCount] = {};
            // Where none is selected, nothing is read.
            if (selected != 0) {
                TilePlace place = work.place;
                place.first = min(begin + lane, length - 1);
                Sums::template addSlot<kCount>(
                        vectors.vector(place, 0),
                        int(warp),
                        queries,
                        padded,
                        params.search,
                        sums);
            }
            auto& kept = shared.sums[at % 2];
#pragma unroll
            for (int q = 0; q < kCount; ++q) {
                kept[q][warp][lane] = sums[q];
            }
            // The sums of the 32 before are read until all come here again.
            __syncthreads();
            // Other warps than for the 32 before.
            const uint32_t q = (warp - at * kQueries) % kWarps;
            if (q < kCount) {
                keepIvfKey<kMetric>(
                        params,
                        work.place.rows[q],
                        (work.columns[q] + begin) / kListGroup,
                        Sums::keyOf(kept[q], lane),
                        begin + lane < length && (selected >> lane & 1));
            }
        }
    }
};

/// Of few dimensions: a warp has the 32 vectors, a lane one of them, for all
/// queries of the tile.
///
/// Bound by: float64, and by the waits at the begin of a tile.
template <Metric kMetric, ListCoding kCoding>
struct IvfSharedAloneScan {
    using Sums = IvfDirectSums<kMetric, kCoding>;
    using Order = IvfTileOrder<kIvfAloneQueries, kIvfSharedVectors>;
    static constexpr int kThreads = kIvfDirectThreads;
    static constexpr int kDims = kMostDimsAlone;
    static_assert(kIvfSharedVectors == kThreads);

    /// Components of a query, with zeros behind the last.
    using Queries = double[kIvfAloneQueries][kDims];

    Queries& queries; // in shared memory
    const IvfDirectParams& params;

    template <class Vectors>
    __device__ __forceinline__ void run(const Vectors& vectors) {
        const IvfParams& search = params.search;
        const Order order{search};
        const uint32_t tiles = order.numTiles();
        for (uint32_t t = blockIdx.x; t < tiles; t += gridDim.x) {
            const IvfWork work = order.workOf(t, tiles);
            const uint32_t first = uint32_t(work.place.first) +
                    threadIdx.x / kWarpSize * kListGroup;
            const uint32_t lane = threadIdx.x % kWarpSize;
            const uint32_t length = uint32_t(work.place.last);
            float xs[kDims] = {};
            uint32_t selected = 0;
            if (first < length) {
                selected = selectedWord(
                        search.lists,
                        work.place.listNumber,
                        first / kListGroup);
            }
            // Where none is selected, nothing is read.
            if (selected != 0) {
                TilePlace place = work.place;
                place.first = min(first + lane, length - 1);
                load(vectors.vector(place, 0), search.d, xs);
            }
            const uint32_t count =
                    min(work.place.numRows, uint32_t(kIvfAloneQueries));
            __syncthreads(); // all have left the tile before
            for (uint32_t i = threadIdx.x; i < count * kDims; i += kThreads) {
                const uint32_t q = i / kDims;
                const int c = int(i % kDims);
                queries[q][c] = c < search.d
                        ? double(search.queries
                                         [int64_t(work.place.rows[q]) *
                                                  search.d +
                                          c])
                        : 0.0;
            }
            __syncthreads();
            if (first >= length) {
                continue;
            }
            const bool isThere =
                    first + lane < length && (selected >> lane & 1);
            for (uint32_t q = 0; q < count; ++q) {
                const uint32_t key = selected == 0
                        ? kNanKey
                        : Sums::keyOfFew(xs, queries[q], search);
                keepIvfKey<kMetric>(
                        params,
                        work.place.rows[q],
                        (work.columns[q] + first) / kListGroup,
                        key,
                        isThere);
            }
        }
    }

   private:
    /// A branch for each code, which takes more than one load, would have one
    /// wait for the other.
    template <class Vector>
    __device__ __forceinline__ static void load(
            const Vector& x,
            int d,
            float (&xs)[kDims]) {
        constexpr int kSome = 8;
#pragma unroll
        for (int c = 0; c < kDims; c += kSome) {
            if (c + kSome <= d) {
#pragma unroll
                for (int i = 0; i < kSome; ++i) {
                    xs[c + i] = x(c + i);
                }
            } else {
#pragma unroll
                for (int i = 0; i < kSome; ++i) {
                    xs[c + i] = c + i < d ? x(c + i) : 0.0f;
                }
            }
        }
    }
};

template <Metric kMetric, ListCoding kCoding>
__global__ __launch_bounds__(
        kIvfDirectThreads,
        kIvfDirectBlocks -
                1) void ivfSharedAloneScanKernel(const __grid_constant__
                                                         IvfDirectParams
                                                                 params) {
    using Scan = IvfSharedAloneScan<kMetric, kCoding>;
    __shared__ typename Scan::Queries queries;
    allowNext();
    waitForPrevious();
    // Starts and steps are those of launchIvfDirectLists.
    VectorsOfLists<kCoding>::with(params.search, [&](const auto& vectors) {
        Scan{queries, params}.run(vectors);
    });
}

template <Metric kMetric, ListCoding kCoding>
__global__ __launch_bounds__(
        kIvfDirectThreads,
        kIvfDirectBlocks) void ivfSharedScanKernel(const __grid_constant__
                                                           IvfDirectParams
                                                                   params) {
    using Scan = IvfSharedScan<kMetric, kCoding>;
    extern __shared__ __align__(16) uint8_t ivfSharedMemory[];
    auto& shared =
            *reinterpret_cast<typename Scan::SharedStorage*>(ivfSharedMemory);
    auto* queries = reinterpret_cast<double*>(ivfSharedMemory + Scan::kBytes);
    allowNext();
    waitForPrevious();
    const int padded = ivfDirectPadded(params.search.d);
    // Starts and steps are those of launchIvfDirectLists.
    withIvfVectors<kCoding>(
            params.search,
            params.search.starts,
            params.search.steps,
            [&](const auto& vectors) {
                Scan{shared, params, queries, padded}.run(vectors);
            });
}

template <Metric kMetric, ListCoding kCoding>
void launchIvfSharedScan(
        const IvfDirectParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    if constexpr (kCoding != ListCoding::Product) {
        if (areSharedAlone(params.search.lists)) {
            launchAfterPrevious(
                    ivfSharedAloneScanKernel<kMetric, kCoding>,
                    dim3(unsigned(multiprocessors * (kIvfDirectBlocks - 1))),
                    kIvfDirectThreads,
                    0,
                    stream,
                    params);
            return;
        }
    }
    // Those of six bits are never rows.
    if constexpr (
            kCoding != ListCoding::Product && kCoding != ListCoding::Scalar6) {
        const auto kernel = ivfSharedScanKernel<kMetric, kCoding>;
        const size_t bytes = IvfSharedScan<kMetric, kCoding>::kBytes +
                sizeof(double) * kIvfSharedQueries *
                        ivfDirectPadded(params.search.d);
        launchAfterPrevious(
                kernel,
                dim3(unsigned(multiprocessors * kIvfDirectBlocks)),
                kIvfDirectThreads,
                allowSharedBytes(kernel, bytes),
                stream,
                params);
    }
}

} // namespace faiss_bits
