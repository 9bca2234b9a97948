/// A tile of distances that are sums of products, by float64 matrix
/// instructions: the canonical distances, though their sums have another order.
///
/// The products of a tile are exact but for roundings of which the bound is
/// known (PairEstimate). A pair whose bounds round to one float32 has it for a
/// canonical distance; those for which they do not are computed again, by
/// eight lanes each, and where they are many (sums that vanish, infinities),
/// the tile is left to ScanTile.
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
    /// Threads with a pair to compute again, from which on the tile is left to
    /// ScanTile: by arithmetic that costs six times the tile, and a pair by
    /// eight lanes four times as much as there.
    static constexpr int kManyUnsure = kThreads / 2;
    /// Tiles that are left to ScanTile after one that was.
    static constexpr int kExactTiles = 7;

   public:
    union SharedStorage {
        typename Staging::SharedStorage staging;
        typename Exact::SharedStorage exact;
    };

    SharedStorage& shared;
    const Params& params;
    int numExact; // tiles that are left to ScanTile
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
        double sums[kDown][kAcross][4] = {};
        multiply(place, after, sums);
        const bool allFinite = !__syncthreads_or(!staging.storeSizes());
        const bool isExact = __syncthreads_and(staging.areIntegers);
        float distances[kDown][kAcross][4];
        uint64_t sure = 0; // bits of sums
        uint64_t unsure = 0;
        if (allFinite) {
            estimate<true>(
                    place, isExact, concerns, sums, distances, sure, unsure);
        } else {
            estimate<false>(
                    place, false, concerns, sums, distances, sure, unsure);
        }
        // Behind it the storage is free.
        if (__syncthreads_count(unsure != 0) > kManyUnsure) {
            numExact = kExactTiles;
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
        __syncwarp(); // what a visitor wrote of a pair that is not sure
        settle(place, unsure, visit);
    }

   private:
    __device__ __forceinline__ static int lane() {
        return threadIdx.x % kWarpSize;
    }
    /// Of sums[a][b][r].
    __device__ __forceinline__ static constexpr int bitOf(int a, int b, int r) {
        return (a * kAcross + b) * 4 + r;
    }
    __device__ __forceinline__ static int query(int a, int r, int ofLane) {
        return threadIdx.x / kWarpSize % 2 * kWarpQueries + a * 16 + r / 2 * 8 +
                ofLane / 4;
    }
    __device__ __forceinline__ static int query(int a, int r) {
        return query(a, r, lane());
    }
    /// Column c of product b. Two products share sixteen vectors, of which a
    /// lane has four side by side.
    __device__ __forceinline__ static int vectorOf(int b, int c) {
        return threadIdx.x / kWarpSize / 2 * kWarpVectors + b / 2 * 16 +
                c / 2 * 4 + b % 2 * 2 + c % 2;
    }
    __device__ __forceinline__ static int vector(int b, int r, int ofLane) {
        return vectorOf(b, ofLane % 4 * 2 + r % 2);
    }
    __device__ __forceinline__ static int vector(int b, int r) {
        return vector(b, r, lane());
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

    struct Pair {
        int query;
        int vector;
    };

    /// Of a bit of a lane of this warp.
    __device__ __forceinline__ static Pair pairAt(int bit, int ofLane) {
        const int r = bit % 4;
        return {query(bit / (4 * kAcross), r, ofLane),
                vector(bit / 4 % kAcross, r, ofLane)};
    }

    /// Canonical distances of the pairs whose bits are set: of four lanes at a
    /// time, by eight lanes each.
    template <class Visit>
    __device__ __forceinline__ void settle(
            const TilePlace& place,
            uint64_t unsure,
            const Visit& visit) {
        while (true) {
            const uint32_t owners = __ballot_sync(kFullWarp, unsure != 0);
            if (owners == 0) {
                return;
            }
            const int group = lane() / kPairLanes;
            uint32_t left = owners;
            for (int i = 0; i < group; ++i) {
                left &= left - 1;
            }
            const int owner = left != 0 ? __ffs(left) - 1 : 0;
            const int bit =
                    __shfl_sync(kFullWarp, max(__ffsll(unsure) - 1, 0), owner);
            const Pair pair = pairAt(bit, owner);
            double distance = 0;
            Vectors::with(params, [&](const auto& vectors) {
                // A group without a pair has those of lane 0.
                const int64_t at =
                        min(int64_t(pair.vector), place.last - place.first - 1);
                const int64_t row =
                        place.row(min(pair.query, int(place.numRows) - 1));
                distance = pairDistance<kMetric>(
                        vectors.vector(place, at),
                        params.queries + row * params.d,
                        params.d,
                        params.power);
            });
            if (left != 0 && lane() % kPairLanes == 0) {
                const float values[] = {canonical::toFloat32(distance)};
                visit(pair.query, pair.vector, values, 1u);
            }
            const uint32_t before = owners & ((1u << lane()) - 1);
            if (__popc(before) < kWarpSize / kPairLanes) {
                unsure &= unsure - 1; // 0 stays
            }
        }
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
