/// A tile of distances that are sums of products, by float64 matrix
/// instructions: the canonical distances, though their sums have another order.
///
/// The products of a tile are exact but for roundings of which the bound is
/// known (PairEstimate). A pair whose bounds round to one float32 has it for a
/// canonical distance; those for which they do not are computed again, by
/// eight lanes each, and where they are many (sums that vanish, infinities),
/// the tile is left to ScanTile. In L2 the first query is subtracted from all;
/// where that leaves many in doubt (vectors far smaller than it), nothing is.
///
/// Bound by: float64 matrix instructions, one operation a component and pair;
/// in few dimensions by the float64 operations and conversions of a pair.
#pragma once

#include <climits>
#include <type_traits>

#include "kernels/device/MmaFloat64.cuh"
#include "kernels/knn/certified/ProductStaging.cuh"
#include "kernels/knn/certified/UnsurePairs.cuh"

namespace faiss_bits {

/// Tiles of 64 queries and 32 x Across vectors; Across is even. Vectors: where
/// they are found (TileVectors.cuh).
template <Metric kMetric, int Across, class Vectors = MatrixOfVectors>
struct ProductTile {
    using Params = typename Vectors::Params;
    using Exact = ScanTile<kMetric, Vectors>;
    using Places = ProductPlaces<Across>;
    static constexpr int kThreads = Places::kThreads;
    static constexpr int kBlocks = 1; // of a multiprocessor
    static constexpr int kQueries = Places::kQueries;
    static constexpr int kVectors = Places::kVectors;
    static_assert(Exact::kThreads == kThreads);
    static_assert(kQueries % Exact::kQueries == 0);
    static_assert(kVectors % Exact::kVectors == 0);

   private:
    using Staging =
            ProductStaging<kMetric, kQueries, kVectors, kThreads, Params>;
    using Unsure = UnsurePairs<kMetric, Across, Vectors>;
    static constexpr int kDepth = Staging::kDepth;
    static constexpr int kDown = Places::kDown;
    static constexpr int kAcross = Across;
    static constexpr int kTogether = 4; // vectors of a lane side by side
    /// Pairs to compute again, from which on the tile is left to ScanTile: by
    /// arithmetic that costs six times the tile, and a pair by eight lanes four
    /// times as much as there.
    static constexpr int kUnit = Unsure::kUnit;
    static constexpr int kManyUnsure = kQueries * kVectors / 8 / kUnit;
    /// The same, from which on the tile is tried without a center, once.
    static constexpr int kSomeUnsure = kQueries * kVectors / 24 / kUnit;
    /// Tiles that are left to ScanTile after one that was.
    static constexpr int kExactTiles = 7;

   public:
    struct SharedStorage {
        union {
            typename Staging::SharedStorage staging;
            typename Exact::SharedStorage exact;
            uint16_t unsure[kManyUnsure * kUnit];
        };
        uint32_t unsureOfWarps[kThreads / kWarpSize];
        // The first components of the next tile, of each thread: registers that
        // hold them through the end of a tile are none in its loop either.
        typename Staging::Components ahead[kThreads];
    };

    SharedStorage& shared;
    const Params& params;
    int numExact;       // tiles that are left to ScanTile
    bool mayTry = true; // a tile without a center
    Staging staging;

    __device__ __forceinline__
    ProductTile(SharedStorage& storage, const Params& parameters)
            : shared(storage),
              params(parameters),
              numExact(
                      // Places within a tile have 32 bits.
                      Vectors::areNear(parameters, kVectors) ? 0 : INT_MAX),
              staging(storage.staging, parameters) {}

    /// Before the first tile.
    __device__ __forceinline__ void begin(const TilePlace& place) {
        Vectors::with(params, [&](const auto& vectors) {
            shared.ahead[threadIdx.x] =
                    staging.fetch(vectors, place, staging.queriesOf(place), 0);
        });
    }

    /// As ScanTile::run; concerns() gets what the key is no less than, or NaN.
    /// If it has beyond(query), no pair concerns it of which the key, before it
    /// is rounded, is that or more. If visit has ofTile(), that gets the pairs
    /// of a warp whose distances are sure, all at once.
    template <class Concerns, class Visit>
    __device__ __forceinline__ void run(
            const TilePlace& place,
            const TilePlace& after,
            const Concerns& concerns,
            const Visit& visit) {
        if (numExact > 0) {
            numExact -= numExact < INT_MAX;
            runExact(place, concerns, visit);
            begin(after);
            return;
        }
        float distances[kDown][kAcross][4];
        uint64_t sure; // bits of sums
        uint64_t unsure;
        int units; // of unsure pairs
        for (int before = 0;; before = units) {
            double sums[kDown][kAcross][4] = {};
            multiply(place, after, sums);
            const bool allFinite = !__syncthreads_or(!staging.storeSizes());
            const bool isExact = __syncthreads_and(staging.areIntegers);
            // Integers are not rounded.
            const bool zerosAreExact = kMetric != Metric::L2 &&
                    (__syncthreads_and(staging.areNonnegative()) || isExact);
            sure = 0;
            unsure = 0;
            const auto estimateBy = [&]<class Estimate>(
                                            std::type_identity<Estimate>,
                                            bool areExact) {
                estimate<Estimate>(
                        place,
                        areExact,
                        concerns,
                        sums,
                        distances,
                        sure,
                        unsure);
            };
            using std::type_identity;
            if (!allFinite) {
                estimateBy(
                        type_identity<PairEstimate<kMetric, false>>(), false);
            } else if (zerosAreExact) {
                estimateBy(
                        type_identity<PairEstimate<kMetric, true, true>>(),
                        isExact);
            } else {
                estimateBy(
                        type_identity<PairEstimate<kMetric, true>>(), isExact);
            }
            units = unsurePairs().count(unsure); // then the storage is free
            if (before > 0) {
                // The next have a center again, if that is better.
                staging.hasCenter = units >= before;
                break;
            }
            if (kMetric != Metric::L2 || !mayTry || units <= kSomeUnsure) {
                break;
            }
            mayTry = staging.hasCenter = false;
            begin(place);
        }
        if (units > kManyUnsure) {
            numExact = kExactTiles;
            staging.hasCenter = kMetric == Metric::L2 && !staging.hasCenter;
            runExact(place, concerns, visit);
            return;
        }
        if constexpr (requires {
                          visit.template ofTile<Places>(distances, sure);
                      }) {
            visit.template ofTile<Places>(distances, sure);
        } else {
#pragma unroll
            for (int a = 0; a < kDown; ++a) {
#pragma unroll
                for (int r = 0; r < 4; r += 2) {
#pragma unroll
                    for (int b = 0; b < kAcross; b += 2) {
                        const float values[kTogether] = {
                                distances[a][b][r],
                                distances[a][b][r + 1],
                                distances[a][b + 1][r],
                                distances[a][b + 1][r + 1]};
                        const int bit = Places::bitOf(a, b, r);
                        const uint32_t mask = uint32_t(sure >> bit & 3) |
                                uint32_t(sure >> (bit + 4) & 3) << 2;
                        if (mask != 0) {
                            visit(Places::query(a, r),
                                  Places::vector(b, r),
                                  values,
                                  mask);
                        }
                    }
                }
            }
        }
        if (units > 0) {
            unsurePairs().settle(place, unsure, visit);
        }
    }

   private:
    __device__ __forceinline__ Unsure unsurePairs() const {
        return {params, shared.unsure, shared.unsureOfWarps};
    }

    __device__ __forceinline__ void multiply(
            const TilePlace& place,
            const TilePlace& after,
            double (&sums)[kDown][kAcross][4]) {
        const int steps = (params.d + kDepth - 1) / kDepth;
        Vectors::with(params, [&](const auto& vectors) {
            using Of = std::remove_cvref_t<decltype(vectors)>;
            // Components are on their way while products are added: reads do
            // not pass the barrier, which two buffers need one of.
            const auto queries = staging.queriesOf(place);
            auto next = shared.ahead[threadIdx.x];
            staging.reset();
            for (int step = 0; step + 1 < steps; ++step) {
                staging.template store<Of, false>(
                        next, step % 2, step * kDepth);
                next = staging.fetch(
                        vectors, place, queries, (step + 1) * kDepth);
                __syncthreads();
                addStep(step % 2, sums);
            }
            const int last = steps - 1;
            staging.template store<Of, true>(next, last % 2, last * kDepth);
            next = staging.fetch(vectors, after, staging.queriesOf(after), 0);
            __syncthreads();
            addStep(last % 2, sums);
            shared.ahead[threadIdx.x] = next;
        });
    }

    /// A lane takes two neighbouring components as numbers t and t + 4 of the
    /// sum, of queries and of vectors alike.
    __device__ __forceinline__ void addStep(
            int buffer,
            double (&sums)[kDown][kAcross][4]) {
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

    /// Sets the bits of pairs that concern the caller, and of those that are
    /// sure the distances.
    template <class Estimate, class Concerns>
    __device__ __forceinline__ void estimate(
            const TilePlace& place,
            bool isExact,
            const Concerns& concerns,
            const double (&sums)[kDown][kAcross][4],
            float (&distances)[kDown][kAcross][4],
            uint64_t& sure,
            uint64_t& unsure) {
        using Row = EstimateRow<kMetric>;
        const double* sizes = shared.staging.sizes;
        const double relative = Row::relativeError(params.d, isExact);
        const int numVectors =
                int(min(place.last - place.first, int64_t(kVectors)));
#pragma unroll
        for (int b = 0; b < kAcross; b += 2) {
            const Row xs[kTogether] = {
                    Row(sizes[Places::vector(b, 0)], relative),
                    Row(sizes[Places::vector(b, 1)], relative),
                    Row(sizes[Places::vector(b + 1, 0)], relative),
                    Row(sizes[Places::vector(b + 1, 1)], relative)};
#pragma unroll
            for (int a = 0; a < kDown; ++a) {
#pragma unroll
                for (int r = 0; r < 4; r += 2) {
                    const int q = Places::query(a, r);
                    const int v = Places::vector(b, r);
                    const Row row(sizes[kVectors + q], relative);
                    if constexpr (requires { concerns.beyond(q); }) {
                        // Mostly they do not, and all is said; a query that
                        // there is not has no limit.
                        const double beyond = q < int(place.numRows)
                                ? concerns.beyond(q)
                                : -double(INFINITY);
                        bool areBeyond = true;
#pragma unroll
                        for (int i = 0; i < kTogether; ++i) {
                            areBeyond = areBeyond &&
                                    Estimate::leastKeyOf(
                                            sums[a][b + i / 2][r + i % 2],
                                            row,
                                            xs[i]) >= beyond;
                        }
                        if (areBeyond) {
                            // Those of a tile before it would be kept for it.
#pragma unroll
                            for (int i = 0; i < kTogether; ++i) {
                                distances[a][b + i / 2][r + i % 2] = 0;
                            }
                            continue;
                        }
                    }
                    uint32_t wanted = 0;
                    uint32_t proven = 0;
#pragma unroll
                    for (int i = 0; i < kTogether; ++i) {
                        const Estimate pair(
                                sums[a][b + i / 2][r + i % 2], row, xs[i]);
                        if (v + i < numVectors &&
                            concerns(q, v + i, pair.leastKey())) {
                            wanted |= 1u << i;
                        }
                        proven |= pair.isSure() ? 1u << i : 0;
                        distances[a][b + i / 2][r + i % 2] =
                                canonical::toFloat32(pair.least);
                    }
                    if (q >= int(place.numRows)) {
                        wanted = 0;
                    }
                    const int bit = Places::bitOf(a, b, r);
                    sure |= bitsOf(wanted & proven) << bit;
                    unsure |= bitsOf(wanted & ~proven) << bit;
                }
            }
        }
    }

    /// Of four pairs of a query.
    __device__ __forceinline__ static uint64_t bitsOf(uint32_t four) {
        return (four & 3) | (four & 12) << 2;
    }

    /// The tile by ScanTile.
    template <class Concerns, class Visit>
    __device__ __forceinline__ void runExact(
            const TilePlace& place,
            const Concerns& concerns,
            const Visit& visit) {
        Exact exact(shared.exact, params);
        for (int q = 0; q < kQueries && q < int(place.numRows);
             q += Exact::kQueries) {
            for (int v = 0; v < kVectors && place.first + v < place.last;
                 v += Exact::kVectors) {
                const TilePlace part = place.from(q, v);
                exact.begin(part);
                exact.run(
                        part,
                        part,
                        [&](int a, int b, float key) {
                            return concerns(q + a, v + b, key);
                        },
                        [&](int a, int b, const auto& values, uint32_t mask) {
                            visit(q + a, v + b, values, mask);
                        });
            }
        }
        __syncthreads();
    }
};

} // namespace faiss_bits
