/// Bounds of keys, L2 or minus the inner product, from products by tensor
/// cores: the canonical key is no less, or no more (IvfEstimateBound.h).
///
/// Bound by: IvfEstimateTile.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfEstimateBound.h"
#include "kernels/ivf/IvfEstimateTile.cuh"
#include "kernels/ivf/IvfFilter.cuh"
#include "kernels/ivf/IvfTileOrder.cuh"

namespace faiss_bits {

/// kAppend: lower bounds that are no greater than a row's limit are appended to
/// what the row has found; else upper bounds go to the row's columns.
template <Metric kMetric, ListLayout kLayout, bool kAppend>
struct IvfEstimates {
    using Tile = IvfEstimateTile<kMetric, kLayout>;
    using Order = IvfTileOrder<Tile::kQueries, Tile::kVectors>;
    using SharedStorage = typename Tile::SharedStorage;

    SharedStorage& shared;
    const IvfParams& params;

    __device__ __forceinline__ void run() {
        const Order order{params};
        const uint32_t tiles = order.numTiles();
        if (blockIdx.x >= tiles) {
            return;
        }
        Tile tile(shared, params);
        IvfWork work = order.workOf(blockIdx.x, tiles);
        tile.begin(work.place);
        for (uint32_t t = blockIdx.x; t < tiles; t += gridDim.x) {
            tile.multiply(*this);
            __syncthreads();
            // The next tile is on its way meanwhile.
            IvfWork after = work;
            if (t + gridDim.x < tiles) {
                after = order.workOf(t + gridDim.x, tiles);
                tile.begin(after.place);
            }
            kAppend ? append(tile, work.place) : write(tile, work);
            work = after;
        }
    }

    /// What the bound of a key has of a vector's square: for L2 a term, else a
    /// length; NaN: there is no bound.
    __device__ __forceinline__ float ofVector(float square) const {
        if (!(square <= ivf_estimate::kGreatest)) {
            return NAN;
        }
        return kMetric == Metric::L2 ? termOfSquare(square)
                                     : __fsqrt_ru(square);
    }

    /// Of a query the term, and for inner products the factor of the length.
    __device__ __forceinline__ float ofQuery(
            const typename Tile::QuerySums& sums,
            float& factor) const {
        factor = 0;
        if (!(sums.squares <= ivf_estimate::kGreatest &&
              sums.centerSize <= ivf_estimate::kGreatest)) {
            return NAN;
        }
        if constexpr (kMetric == Metric::L2) {
            return termOfSquare(sums.squares);
        }
        const float length = __fmul_ru(
                ivf_estimate::ofProduct(params.d), __fsqrt_ru(sums.squares));
        const float slack = __fmaf_ru(
                ivf_estimate::ofCenter(params.d),
                sums.centerSize,
                ivf_estimate::kLeast);
        factor = kAppend ? -length : length;
        return kAppend ? __fsub_rd(-sums.center, slack)
                       : __fadd_ru(-sums.center, slack);
    }

   private:
    static constexpr int kPairs = 2 * Tile::kAcross; // of a row and lane

    __device__ __forceinline__ float termOfSquare(float square) const {
        const float slack = __fmaf_ru(
                ivf_estimate::ofSquares(params.d),
                square,
                0.5f * ivf_estimate::kLeast);
        return kAppend ? __fsub_rd(square, slack) : __fadd_ru(square, slack);
    }

    /// The bound of a pair's key.
    __device__ __forceinline__ static float bound(
            float product,
            float ofVector,
            float ofQuery,
            float factor) {
        return kMetric == Metric::L2
                ? __fmaf_rn(-2.0f, product, ofVector + ofQuery)
                : __fmaf_rn(factor, ofVector, ofQuery - product);
    }

    __device__ __forceinline__ void append(Tile& tile, const TilePlace& place)
            const {
        const int numRows = min(int(place.numRows), Tile::kQueries);
        const int numVectors =
                int(min(place.last - place.first, int64_t(Tile::kVectors)));
        const bool isFull = numVectors == Tile::kVectors;
        uint32_t row = 0;
        float ofRow = 0;
        float factor = 0;
        float limit = 0;
        uint32_t passed = 0;
        float keys[kPairs];
        tile.forRows(
                [&](int q) {
                    passed = 0;
                    if (q < numRows) {
                        row = place.rows[q];
                        ofRow = shared.ofQueries[q];
                        factor = shared.factors[q];
                        limit = limitOf(row);
                    }
                },
                [&](int i, int v, float product) {
                    keys[i] =
                            bound(product, shared.ofVectors[v], ofRow, factor);
                    // Without a bound, of itself or for the row, it passes.
                    if ((isFull || v < numVectors) && !(keys[i] > limit)) {
                        passed |= 1u << i;
                    }
                },
                [&](int q) {
                    if (q < numRows && passed != 0) {
                        appendRow(place, row, passed, keys);
                    }
                });
    }

    /// NaN: none.
    __device__ __forceinline__ float limitOf(uint32_t row) const {
        const int64_t last = int64_t(row + 1) * params.k - 1;
        return params.nearestPlaces[last] < 0 ? float(NAN)
                                              : params.nearest[last];
    }

    __device__ __forceinline__ void appendRow(
            const TilePlace& place,
            uint32_t row,
            uint32_t passed,
            const float (&keys)[kPairs]) const {
        const int firstVector = threadIdx.x / kWarpSize / 2 * 64 +
                threadIdx.x % kWarpSize % 4 * 2;
        if (params.lists.selectedBits) {
            passed &= selectedOf(place, firstVector);
            if (passed == 0) {
                return;
            }
        }
        uint32_t at =
                atomicAdd(&params.numFound[row], uint32_t(__popc(passed)));
        float* foundKeys = params.foundKeys + int64_t(row) * params.room;
        uint64_t* found = params.found + int64_t(row) * params.room;
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
            if (passed >> i & 1) {
                if (at < params.room) {
                    const int v = firstVector + i / 2 * 8 + i % 2;
                    // What has no bound may be the nearest.
                    foundKeys[at] = keys[i] == keys[i] ? keys[i] : -INFINITY;
                    found[at] = uint64_t(place.listNumber) << 32 |
                            uint32_t(place.first + v);
                }
                ++at;
            }
        }
    }

    /// Bits of a thread's pairs that the filter selects.
    __device__ __forceinline__ uint32_t
    selectedOf(const TilePlace& place, int firstVector) const {
        uint32_t selected = 0;
#pragma unroll
        for (int i = 0; i < kPairs; i += 2) {
            const uint32_t v =
                    min(uint32_t(place.first) + firstVector + i / 2 * 8,
                        uint32_t(place.last) - 1);
            const uint32_t word =
                    selectedWord(params.lists, place.listNumber, v / 32);
            selected |= (word >> (v % 32) & 3) << i;
        }
        return selected;
    }

    __device__ __forceinline__ void write(Tile& tile, const IvfWork& work)
            const {
        const TilePlace& place = work.place;
        const int numRows = min(int(place.numRows), Tile::kQueries);
        const int numVectors =
                int(min(place.last - place.first, int64_t(Tile::kVectors)));
        float ofRow = 0;
        float factor = 0;
        float* out = nullptr;
        tile.forRows(
                [&](int q) {
                    out = nullptr;
                    if (q < numRows) {
                        ofRow = shared.ofQueries[q];
                        factor = shared.factors[q];
                        out = params.distances +
                                int64_t(place.rows[q]) * params.stride +
                                work.columns[q] + place.first;
                    }
                },
                [&](int, int v, float product) {
                    if (out && v < numVectors) {
                        out[v] = isSelected(
                                         params.lists,
                                         place.listNumber,
                                         uint32_t(place.first) + v)
                                ? bound(product,
                                        shared.ofVectors[v],
                                        ofRow,
                                        factor)
                                : NAN;
                    }
                },
                [](int) {});
    }
};

template <Metric kMetric, ListLayout kLayout, bool kAppend>
__global__ void __launch_bounds__(256, 2)
        ivfEstimatesKernel(const __grid_constant__ IvfParams params) {
    extern __shared__ __align__(16) uint8_t memory[];
    using Estimates = IvfEstimates<kMetric, kLayout, kAppend>;
    allowNext();
    waitForPrevious();
    Estimates{
            *reinterpret_cast<typename Estimates::SharedStorage*>(memory),
            params}
            .run();
}

template <Metric kMetric>
void launchIvfEstimates(
        const IvfParams& params,
        bool append,
        int multiprocessors,
        cudaStream_t stream) {
    const auto launch = [&](auto kernel, size_t bytes) {
        launchAfterPrevious(
                kernel,
                dim3(unsigned(2 * multiprocessors)),
                256,
                allowSharedBytes(kernel, bytes),
                stream,
                params);
    };
    const auto ofLayout = [&]<ListLayout kLayout>() {
        using Tile = IvfEstimateTile<kMetric, kLayout>;
        const size_t bytes = sizeof(typename Tile::SharedStorage);
        append ? launch(ivfEstimatesKernel<kMetric, kLayout, true>, bytes)
               : launch(ivfEstimatesKernel<kMetric, kLayout, false>, bytes);
    };
    params.lists.layout == ListLayout::Rows
            ? ofLayout.template operator()<ListLayout::Rows>()
            : ofLayout.template operator()<ListLayout::Interleaved>();
}

} // namespace faiss_bits
