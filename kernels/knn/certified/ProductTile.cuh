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

#include "kernels/device/MmaFloat64.cuh"
#include "kernels/knn/certified/ProductStaging.cuh"

namespace faiss_bits {

/// Tiles of 64 queries and 32 x Across vectors; Across is even. Vectors: where
/// they are found (TileVectors.cuh).
template <Metric kMetric, int Across, class Vectors = MatrixOfVectors>
struct ProductTile {
    using Params = typename Vectors::Params;
    using Exact = ScanTile<kMetric, Vectors>;
    static constexpr int kThreads = 256;
    static constexpr int kBlocks = 1; // of a multiprocessor
    static constexpr int kQueries = 64;
    static constexpr int kVectors = 32 * Across;
    static_assert(Exact::kThreads == kThreads);
    static_assert(kQueries % Exact::kQueries == 0);
    static_assert(kVectors % Exact::kVectors == 0);

   private:
    using Staging =
            ProductStaging<kMetric, kQueries, kVectors, kThreads, Params>;
    static constexpr int kDepth = Staging::kDepth;
    // Of a warp: two products of 16 queries by Across of 8 vectors. Of a block:
    // 2 x 4 warps. With as many sums as registers hold shared memory is read
    // the least.
    static constexpr int kDown = 2;
    static constexpr int kAcross = Across;
    static constexpr int kWarpVectors = 8 * kAcross;
    static constexpr int kWarpQueries = 16 * kDown;
    static constexpr int kSums = 4 * kDown * kAcross;
    static_assert(kSums <= 64); // a bit each
    static_assert(kWarpQueries * 2 == kQueries && kWarpVectors * 4 == kVectors);
    static constexpr int kTogether = 4; // vectors of a lane side by side
    /// Pairs to compute again, from which on the tile is left to ScanTile: by
    /// arithmetic that costs six times the tile, and a pair by eight lanes four
    /// times as much as there. They are counted in units.
    static constexpr int kUnit = kSums; // a warp has one a lane at most
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
            // Pairs to compute again: query * kVectors + vector.
            uint16_t unsure[kManyUnsure * kUnit];
        };
        uint32_t unsureOfWarps[kThreads / kWarpSize];
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
            staging.fetch(vectors, place, 0);
        });
    }

    /// As ScanTile::run; concerns() gets what the key is no less than, or NaN.
    /// If it has beyond(query), no pair concerns it of which the key, before it
    /// is rounded, is that or more.
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
            sure = 0;
            unsure = 0;
            allFinite ? estimate<true>(
                                place,
                                isExact,
                                concerns,
                                sums,
                                distances,
                                sure,
                                unsure)
                      : estimate<false>(
                                place,
                                false,
                                concerns,
                                sums,
                                distances,
                                sure,
                                unsure);
            units = countUnsure(unsure); // behind it the storage is free
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
                    const int bit = bitOf(a, b, r);
                    const uint32_t mask = uint32_t(sure >> bit & 3) |
                            uint32_t(sure >> (bit + 4) & 3) << 2;
                    if (mask != 0) {
                        visit(query(a, r), vector(b, r), values, mask);
                    }
                }
            }
        }
        if (units > 0) {
            settle(place, unsure, visit);
        }
    }

   private:
    __device__ __forceinline__ static int lane() {
        return threadIdx.x % kWarpSize;
    }
    /// Of sums[a][b][r].
    __device__ __forceinline__ static constexpr int bitOf(int a, int b, int r) {
        return (a * kAcross + b) * 4 + r;
    }
    __device__ __forceinline__ static int query(int a, int r) {
        return threadIdx.x / kWarpSize % 2 * kWarpQueries + a * 16 + r / 2 * 8 +
                lane() / 4;
    }
    /// Column c of product b. Two products share sixteen vectors, of which a
    /// lane has four side by side.
    __device__ __forceinline__ static int vectorOf(int b, int c) {
        return threadIdx.x / kWarpSize / 2 * kWarpVectors + b / 2 * 16 +
                c / 2 * 4 + b % 2 * 2 + c % 2;
    }
    __device__ __forceinline__ static int vector(int b, int r) {
        return vectorOf(b, lane() % 4 * 2 + r % 2);
    }

    __device__ __forceinline__ void multiply(
            const TilePlace& place,
            const TilePlace& after,
            double (&sums)[kDown][kAcross][4]) {
        // One block of instructions a step, so that they fill the time that
        // those of matrices take.
        const int steps = (params.d + kDepth - 1) / kDepth;
        Vectors::with(params, [&](const auto& vectors) {
            // Components are on their way for the time of a step.
            const auto pass = [&](int step, const TilePlace& from, int depth) {
                addStep(step % 2, sums);
                staging.store((step + 1) % 2, (step + 1) * kDepth);
                staging.fetch(vectors, from, depth);
                __syncthreads();
            };
            staging.reset();
            staging.store(0, 0);
            steps > 1 ? staging.fetch(vectors, place, kDepth)
                      : staging.fetch(vectors, after, 0);
            __syncthreads();
            for (int step = 0; step + 2 < steps; ++step) {
                pass(step, place, (step + 2) * kDepth);
            }
            if (steps > 1) {
                pass(steps - 2, after, 0);
            }
            addStep((steps - 1) % 2, sums);
        });
    }

    /// A lane takes two neighbouring components as numbers t and t + 4 of the
    /// sum, of queries and of vectors alike.
    __device__ __forceinline__ void addStep(
            int buffer,
            double (&sums)[kDown][kAcross][4]) {
        const int pair = lane() % 4 * 2;
        double q[kDown][4];
#pragma unroll
        for (int a = 0; a < kDown; ++a) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const double2 two =
                        staging.queryPair(buffer, query(a, 0), pair + i);
                q[a][2 * i] = two.x;
                q[a][2 * i + 1] = two.y;
            }
        }
#pragma unroll
        for (int b = 0; b < kAcross; ++b) {
            const double2 two =
                    staging.vectorPair(buffer, vectorOf(b, lane() / 4), pair);
            const double x[2] = {two.x, two.y};
#pragma unroll
            for (int a = 0; a < kDown; ++a) {
                mmaFloat64(sums[a][b], q[a], x);
            }
        }
    }

    /// Sets the bits of pairs that concern the caller, and of those that are
    /// sure the distances.
    template <bool AllFinite, class Concerns>
    __device__ __forceinline__ void estimate(
            const TilePlace& place,
            bool isExact,
            const Concerns& concerns,
            const double (&sums)[kDown][kAcross][4],
            float (&distances)[kDown][kAcross][4],
            uint64_t& sure,
            uint64_t& unsure) {
        using Estimate = PairEstimate<kMetric, AllFinite>;
        using Row = EstimateRow<kMetric>;
        const double* sizes = shared.staging.sizes;
        const double relative = Row::relativeError(params.d, isExact);
        const int numVectors =
                int(min(place.last - place.first, int64_t(kVectors)));
#pragma unroll
        for (int b = 0; b < kAcross; b += 2) {
            const Row xs[kTogether] = {
                    Row(sizes[vector(b, 0)], relative),
                    Row(sizes[vector(b, 1)], relative),
                    Row(sizes[vector(b + 1, 0)], relative),
                    Row(sizes[vector(b + 1, 1)], relative)};
#pragma unroll
            for (int a = 0; a < kDown; ++a) {
#pragma unroll
                for (int r = 0; r < 4; r += 2) {
                    const int q = query(a, r);
                    const int v = vector(b, r);
                    const Row row(sizes[kVectors + q], relative);
                    if constexpr (requires { concerns.beyond(q); }) {
                        // Mostly they do not, and all is said.
                        const double beyond = concerns.beyond(q);
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
                    const int bit = bitOf(a, b, r);
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

    /// The unsure pairs of the block in units of a warp, the same in all
    /// threads. Begins and ends with the block in step.
    __device__ __forceinline__ int countUnsure(uint64_t unsure) const {
        const int ofWarp = __reduce_add_sync(kFullWarp, __popcll(unsure));
        if (lane() == 0) {
            shared.unsureOfWarps[threadIdx.x / kWarpSize] = ofWarp;
        }
        return __syncthreads_count(lane() * kUnit < ofWarp);
    }

    /// Canonical distances of the pairs whose bits are set, no more than there
    /// is room for, by eight lanes each: behind countUnsure(). All pairs of the
    /// block are dealt out, as one warp may have most. Ends with the block in
    /// step.
    template <class Visit>
    __device__ __forceinline__ void settle(
            const TilePlace& place,
            uint64_t unsure,
            const Visit& visit) {
        const int warp = threadIdx.x / kWarpSize;
        const int mine = __popcll(unsure);
        int at = mine; // where this lane's begin
#pragma unroll
        for (int distance = 1; distance < kWarpSize; distance *= 2) {
            const int other = __shfl_up_sync(kFullWarp, at, distance);
            at += lane() >= distance ? other : 0;
        }
        at -= mine;
        int count = 0; // of the block
#pragma unroll
        for (int w = 0; w < kThreads / kWarpSize; ++w) {
            const int ofWarp = shared.unsureOfWarps[w];
            at += w < warp ? ofWarp : 0;
            count += ofWarp;
        }
        for (; unsure != 0; unsure &= unsure - 1, ++at) {
            const int bit = __ffsll(unsure) - 1;
            const int r = bit % 4;
            shared.unsure[at] = uint16_t(
                    query(bit / (4 * kAcross), r) * kVectors +
                    vector(bit / 4 % kAcross, r));
        }
        // What a visitor wrote of a pair that is not sure is behind it, too.
        __syncthreads();
        constexpr int kGroups = kThreads / kPairLanes;
        for (int first = 0; first < count; first += kGroups) {
            const int i = first + int(threadIdx.x) / kPairLanes;
            // A group without a pair has that of another.
            const int pair = shared.unsure[min(i, count - 1)];
            const int q = pair / kVectors;
            const int v = pair % kVectors;
            double distance = 0;
            Vectors::with(params, [&](const auto& vectors) {
                distance = pairDistance<kMetric>(
                        vectors.vector(place, v),
                        params.queries + place.row(q) * params.d,
                        params.d,
                        params.power);
            });
            if (i < count && lane() % kPairLanes == 0) {
                const float values[] = {canonical::toFloat32(distance)};
                visit(q, v, values, 1u);
            }
        }
        __syncthreads();
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
