/// Canonical distances of all pairs, where tiles are few: the blocks of a
/// cluster share a tile of many dimensions. Each multiplies some of the
/// components; then all read the sums of all, in one order, for some of the
/// pairs. Sums of products are sums in whatever order (ProductTile), and what
/// they leave in doubt is computed by the definition, by eight lanes a pair.
///
/// Bound by: reads on their way, and barriers; then the matrix instructions.
#pragma once

#include <cooperative_groups.h>
#include <type_traits>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/KernelLaunch.h"
#include "kernels/device/MmaFloat64.cuh"
#include "kernels/knn/all_pairs/SplitPairs.h"
#include "kernels/knn/certified/ProductPlaces.cuh"
#include "kernels/knn/certified/ProductStaging.cuh"

namespace faiss_bits {

template <Metric kMetric>
struct SplitPairs {
    using Vectors = MatrixOfVectors;
    using Places = ProductPlaces<kNarrowTile / 32>;
    static constexpr int kThreads = Places::kThreads;
    static constexpr int kBlocks = 2; // of a multiprocessor
    static constexpr int kQueries = Places::kQueries;
    static constexpr int kVectors = Places::kVectors;
    static_assert(kQueries == kProductQueries && kVectors == kNarrowTile);

   private:
    using Staging = ProductStaging<
            kMetric,
            kQueries,
            kVectors,
            kThreads,
            CertifiedParams>;
    using Row = EstimateRow<kMetric>;
    static constexpr int kDepth = Staging::kDepth;
    static_assert(kDepth == kProductDepth);
    static constexpr int kDown = Places::kDown;
    static constexpr int kAcross = Places::kAcross;
    /// That stage a row, and the rows between two of a lane.
    static constexpr int kRowLanes = 4;
    static constexpr int kRowStep = kThreads / kRowLanes;

    /// Of components, in L2 less the center.
    enum Traits : uint32_t {
        kAreIntegers = 1,
        kAreMultiples = 2, // of a unit: scaleOf()
        kAreNonnegative = 4
    };

   public:
    struct SharedStorage {
        union {
            typename Staging::SharedStorage staging;
            // Rows eight banks apart.
            alignas(16) double sums[kQueries][kVectors + 4];
        };
        double squares[kVectors + kQueries]; // of norms: vectors, then queries
        double sizes[kVectors + kQueries];   // Row::sizeOf, of all parts
        uint8_t exact[kVectors + kQueries];  // Traits by which a row is exact
        uint32_t traits;                     // of this part
        uint32_t numUnsure;
        uint16_t unsure[kQueries * kVectors];
    };

    SharedStorage& shared;
    const AllPairsParams& params;

    __device__ __forceinline__ void run() const {
#if __CUDA_ARCH__ >= 900
        const CertifiedParams& search = params.search;
        const auto cluster = cooperative_groups::this_cluster();
        const int parts = int(cluster.num_blocks());
        const int part = int(cluster.block_rank());
        const uint32_t rowTiles = (search.rows + kQueries - 1) / kQueries;
        const uint32_t tile = blockIdx.x / parts;
        const uint32_t row = tile % rowTiles * kQueries;
        const TilePlace place{
                int64_t(tile / rowTiles) * kVectors,
                search.n,
                nullptr,
                search.rows - row,
                row};
        if (threadIdx.x == 0) {
            shared.numUnsure = 0;
            if (blockIdx.x == 0 && search.numRescored) {
                atomicAdd(
                        search.numRescored,
                        (unsigned long long)(search.rows) * search.n);
            }
        }
        multiply(place, part, parts);
        cluster.sync();
        switch (parts) {
            case 1:
                joinParts<1>(cluster, place, part);
                break;
            case 2:
                joinParts<2>(cluster, place, part);
                break;
            case 4:
                joinParts<4>(cluster, place, part);
                break;
            default:
                joinParts<kMostPairParts>(cluster, place, part);
        }
        cluster.sync(); // sums have been read, and unsure pairs counted
        settle(place);
#endif
    }

   private:
    /// Leaves the sums of this part's components in shared memory.
    __device__ __forceinline__ void multiply(
            const TilePlace& place,
            int part,
            int parts) const {
        const CertifiedParams& search = params.search;
        const int steps = (search.d + kDepth - 1) / kDepth;
        const int ofPart = (steps + parts - 1) / parts;
        const int first = part * ofPart;
        const int last = min(first + ofPart, steps);
        Staging staging(shared.staging, search);
        double sums[kDown][kAcross][4] = {};
        const float scale = scaleOf(place);
        bool areMultiples = kMetric == Metric::L2;
        Vectors::with(search, [&](const auto& vectors) {
            using Of = std::remove_cvref_t<decltype(vectors)>;
            const auto queries = staging.queriesOf(place);
            const auto fetch = [&](int step) {
                return staging.fetch(vectors, place, queries, step * kDepth);
            };
            // Two steps are on their way.
            auto even = fetch(first);
            auto odd = fetch(first + 1);
            staging.reset();
            const auto add = [&](auto& next, int step, int buffer) {
                if (kMetric == Metric::L2 &&
                    __any_sync(kFullWarp, areMultiples)) {
                    areMultiples = areMultiples && isMultiple<Of>(next, scale);
                }
                staging.template store<Of, true>(next, buffer, step * kDepth);
                next = fetch(step + 2);
                __syncthreads();
                addStep(staging, place, buffer, sums);
            };
            for (int step = first; step < last; step += 2) {
                add(even, step, 0);
                if (step + 1 < last) {
                    add(odd, step + 1, 1);
                }
            }
        });
        keepSquares(staging);
        const bool areIntegers = __syncthreads_and(staging.areIntegers);
        const bool areNonnegative = __syncthreads_and(staging.areNonnegative());
        areMultiples = __syncthreads_and(areMultiples);
        if (threadIdx.x == 0) {
            shared.traits = (areIntegers ? kAreIntegers : 0u) |
                    (areMultiples ? kAreMultiples : 0u) |
                    (areNonnegative ? kAreNonnegative : 0u);
        }
        // All have read the last components, which lie there too.
#pragma unroll
        for (int a = 0; a < kDown; ++a) {
#pragma unroll
            for (int b = 0; b < kAcross; ++b) {
#pragma unroll
                for (int r = 0; r < 4; r += 2) {
                    *reinterpret_cast<double2*>(&shared.sums[Places::query(
                            a, r)][Places::vector(b, r)]) =
                            make_double2(sums[a][b][r], sums[a][b][r + 1]);
                }
            }
        }
    }

    /// What makes integers of multiples of the last bit of the first query's
    /// first component, or of 1. Of numbers far from the origin all are such.
    __device__ __forceinline__ float scaleOf(const TilePlace& place) const {
        constexpr int kLastBit = 23;
        constexpr int kMost = 100; // no product with it is rounded, as by less
                                   // than 1 it might be
        const uint32_t bits = __float_as_uint(
                params.search.queries[place.row(0) * params.search.d]);
        const int exponent = int(bits >> kLastBit & 0xff) - 127;
        return ldexpf(1.0f, min(max(kLastBit - exponent, 0), kMost));
    }

    template <class Of>
    __device__ __forceinline__ static bool isMultiple(
            const typename Staging::Components& next,
            float scale) {
        constexpr int kStaged = (kVectors + kQueries) / kRowStep;
        bool all = true;
        const auto test = [&](float value) {
            all = all && rintf(value * scale) == value * scale;
        };
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            test(next.center[j]);
#pragma unroll
            for (int i = 0; i < kStaged; ++i) {
                test(i < kVectors / kRowStep
                             ? HeldComponent<Of>::numberOf(next.held[i][j])
                             : heldNumber<float>(next.held[i][j]));
            }
        }
        return all;
    }

    /// As ProductTile; warps whose queries are not there have nothing to do.
    __device__ __forceinline__ static void addStep(
            const Staging& staging,
            const TilePlace& place,
            int buffer,
            double (&sums)[kDown][kAcross][4]) {
        const int firstQuery =
                threadIdx.x / kWarpSize % 2 * Places::kWarpQueries;
        if (firstQuery >= int(place.numRows)) {
            return;
        }
        const int pair = Places::lane() % 4 * 2;
        double q[kDown][4];
#pragma unroll
        for (int a = 0; a < kDown; ++a) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const double2 two = staging.queryPair(
                        buffer, Places::query(a, 0), pair + i);
                q[a][2 * i] = two.x;
                q[a][2 * i + 1] = two.y;
            }
        }
#pragma unroll
        for (int b = 0; b < kAcross; ++b) {
            const double2 two = staging.vectorPair(
                    buffer, Places::vectorOf(b, Places::lane() / 4), pair);
            const double x[2] = {two.x, two.y};
#pragma unroll
            for (int a = 0; a < kDown; ++a) {
                mmaFloat64(sums[a][b], q[a], x);
            }
        }
    }

    /// Of which four lanes each have a part.
    __device__ __forceinline__ void keepSquares(Staging& staging) const {
        constexpr int kStaged = (kVectors + kQueries) / kRowStep;
        static_assert(sizeof(staging.squares) == kStaged * sizeof(double));
#pragma unroll
        for (int i = 0; i < kStaged; ++i) {
            double square = staging.squares[i];
            square += __shfl_xor_sync(kFullWarp, square, 1);
            square += __shfl_xor_sync(kFullWarp, square, 2);
            if (threadIdx.x % kRowLanes == 0) {
                shared.squares[threadIdx.x / kRowLanes + i * kRowStep] = square;
            }
        }
    }

    /// Writes the distances of this block's pairs that are sure, and lists the
    /// others.
    template <int kParts, class Cluster>
    __device__ __forceinline__ void joinParts(
            const Cluster& cluster,
            const TilePlace& place,
            int part) const {
        const SharedStorage* others[kParts];
        uint32_t traits = ~0u;
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            others[i] = cluster.map_shared_rank(&shared, i);
            traits &= others[i]->traits;
        }
        const auto sumOf = [&](const auto& element) {
            double sum = 0;
#pragma unroll
            for (int i = 0; i < kParts; ++i) {
                sum += element(*others[i]);
            }
            return sum;
        };
        if (threadIdx.x < kVectors + kQueries) {
            const double square = sumOf(
                    [](const auto& of) { return of.squares[threadIdx.x]; });
            const double scale = scaleOf(place);
            const bool isInteger =
                    traits & kAreIntegers && square < Row::kExactSquares;
            const bool isMultiple = traits & kAreMultiples &&
                    square < Row::kExactSquares / (scale * scale);
            shared.sizes[threadIdx.x] = Row::sizeOf(square);
            shared.exact[threadIdx.x] = (isInteger ? kAreIntegers : 0u) |
                    (isMultiple ? kAreMultiples : 0u);
        }
        __syncthreads();
        const int numPairs = min(int(place.numRows), kQueries) * kVectors;
        for (int i = part * kThreads + int(threadIdx.x); i < numPairs;
             i += kParts * kThreads) {
            const int q = i / kVectors;
            const int v = i % kVectors;
            if (place.first + v >= place.last) {
                continue;
            }
            const double product =
                    sumOf([&](const auto& of) { return of.sums[q][v]; });
            const bool isExact = shared.exact[v] & shared.exact[kVectors + q];
            const double relative =
                    Row::relativeError(params.search.d, isExact);
            const Row ofQuery(shared.sizes[kVectors + q], relative);
            const Row ofVector(shared.sizes[v], relative);
            const auto keep = [&](const auto& pair) {
                if (pair.isSure()) {
                    *placeOf(place, q, v) = canonical::toFloat32(pair.least);
                } else {
                    shared.unsure[atomicAdd(&shared.numUnsure, 1)] =
                            uint16_t(i);
                }
            };
            const bool zerosAreExact = kMetric != Metric::L2 &&
                    (traits & kAreNonnegative || isExact);
            if (zerosAreExact) {
                keep(PairEstimate<kMetric, false, true>(
                        product, ofQuery, ofVector));
            } else {
                keep(PairEstimate<kMetric, false>(product, ofQuery, ofVector));
            }
        }
    }

    /// The unsure pairs, by eight lanes each.
    __device__ __forceinline__ void settle(const TilePlace& place) const {
        const CertifiedParams& search = params.search;
        const int count = int(shared.numUnsure);
        constexpr int kGroups = kThreads / kPairLanes;
        for (int first = 0; first < count; first += kGroups) {
            const int i = first + int(threadIdx.x) / kPairLanes;
            // A group without a pair has that of another.
            const int pair = shared.unsure[min(i, count - 1)];
            const int q = pair / kVectors;
            const int v = pair % kVectors;
            double distance = 0;
            Vectors::with(search, [&](const auto& vectors) {
                distance = pairDistance<kMetric>(
                        vectors.vector(place, v),
                        search.queries + place.row(q) * search.d,
                        search.d,
                        search.power);
            });
            if (i < count && threadIdx.x % kPairLanes == 0) {
                *placeOf(place, q, v) = canonical::toFloat32(distance);
            }
        }
    }

    __device__ __forceinline__ float* placeOf(
            const TilePlace& place,
            int q,
            int v) const {
        return params.distances + (place.firstRow + q) * params.stride +
                place.first + v;
    }
};

template <Metric kMetric>
__global__ void __launch_bounds__(
        SplitPairs<kMetric>::kThreads,
        SplitPairs<kMetric>::kBlocks)
        splitPairsKernel(const __grid_constant__ AllPairsParams params) {
    using Pairs = SplitPairs<kMetric>;
    __shared__ typename Pairs::SharedStorage shared;
    waitForPrevious();
    Pairs{shared, params}.run();
}

template <Metric kMetric>
void launchSplitPairs(
        const AllPairsParams& params,
        int parts,
        cudaStream_t stream) {
    using Pairs = SplitPairs<kMetric>;
    const int64_t tiles = allPairsTiles(
            params.search.rows,
            params.search.n,
            Pairs::kQueries,
            Pairs::kVectors);
    KernelLaunch(
            splitPairsKernel<kMetric>,
            dim3(unsigned(tiles * parts)),
            Pairs::kThreads,
            0,
            stream)
            .inClusters(unsigned(parts))
            .early()
            .enqueue(params);
}

} // namespace faiss_bits
