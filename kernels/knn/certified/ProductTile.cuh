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
#include "kernels/knn/certified/PairEstimate.cuh"
#include "kernels/knn/certified/ScanTile.cuh"

namespace faiss_bits {

/// Tiles of 64 queries and 32 x Across vectors.
template <Metric kMetric, int Across>
struct ProductTile {
    using Exact = ScanTile<kMetric, 256>;
    static constexpr int kThreads = 256;
    static constexpr int kBlocks = 1; // of a multiprocessor
    static constexpr int kQueries = 64;
    static constexpr int kVectors = 32 * Across;
    static_assert(Exact::kThreads == kThreads);
    static_assert(kQueries % Exact::kQueries == 0);
    static_assert(kVectors % Exact::kVectors == 0);

   private:
    using Row = EstimateRow<kMetric>;
    static constexpr int kRows = kVectors + kQueries;
    static constexpr int kDepth = 8;      // components at a time
    static constexpr int kLanes = kDepth; // that stage a row
    static constexpr int kRowStep = kThreads / kLanes;
    static constexpr int kStagedVectors = kVectors / kRowStep; // of a lane
    static constexpr int kStaged = kRows / kRowStep;
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
    /// ScanTile: that costs six times the tile, a pair by eight lanes four
    /// times as much as there.
    static constexpr int kManyUnsure = kThreads / 2;
    /// Tiles that are left to ScanTile after one that was.
    static constexpr int kExactTiles = 7;

   public:
    union SharedStorage {
        struct {
            // Less the center. The lanes of a product read sixteen bytes each,
            // without conflicts of banks.
            alignas(16) double vectors[2][kVectors][kDepth];
            // Queries i and i + 8 of sixteen side by side: queryPlace().
            alignas(16) double queries[2][kQueries * kDepth];
            double squares[kRows]; // of their norms
        } product;
        typename Exact::SharedStorage exact;
    };

    SharedStorage& shared;
    const CertifiedParams& params;
    int numExact; // tiles that are left to ScanTile
    float next[kStaged];
    float center; // of the components of next
    double squares[kStaged];
    bool areIntegers; // those of squares

    __device__ __forceinline__
    ProductTile(SharedStorage& storage, const CertifiedParams& parameters)
            : shared(storage),
              params(parameters),
              numExact(
                      // Places within a tile have 32 bits.
                      parameters.vectors.rowStride < UINT32_MAX / kVectors
                              ? 0
                              : INT_MAX) {}

    /// Before the first tile.
    __device__ __forceinline__ void begin(const TilePlace& place) {
        withVectors(params.vectors, [&](const auto* data) {
            fetch(data, place, 0);
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
        const bool allFinite = !__syncthreads_or(!storeSquares());
        const bool isExact = __syncthreads_and(areIntegers);
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
        withVectors(params.vectors, [&](const auto* data) {
            // Components are on their way for the time of a step.
            const auto pass = [&](int step, const TilePlace& from, int depth) {
                addStep(step % 2, sums);
                store((step + 1) % 2, (step + 1) * kDepth);
                fetch(data, from, depth);
                __syncthreads();
            };
            resetSquares();
            store(0, 0);
            steps > 1 ? fetch(data, place, kDepth) : fetch(data, after, 0);
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
                const auto two = *reinterpret_cast<const double2*>(
                        &shared.product.queries[buffer][queryPlace(
                                query(a, 0), pair + i)]);
                q[a][2 * i] = two.x;
                q[a][2 * i + 1] = two.y;
            }
        }
#pragma unroll
        for (int b = 0; b < kAcross; ++b) {
            const auto two = *reinterpret_cast<const double2*>(
                    &shared.product
                             .vectors[buffer][vectorOf(b, lane() / 4)][pair]);
            const double x[2] = {two.x, two.y};
#pragma unroll
            for (int a = 0; a < kDown; ++a) {
                mmaFloat64(sums[a][b], q[a], x);
            }
        }
    }

    /// Where component c of a query lies.
    __device__ __forceinline__ static int queryPlace(int query, int c) {
        const int pair = query / 16 * 8 + query % 8;
        return (pair * kDepth + (c ^ (pair & 1))) * 2 + query / 8 % 2;
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
        const double* squares = shared.product.squares;
        const double relative = Row::relativeError(params.d, isExact);
        const int numVectors =
                int(min(place.last - place.first, int64_t(kVectors)));
#pragma unroll
        for (int b = 0; b < kAcross; b += 2) {
            const Row xs[kTogether] = {
                    Row(squares[vector(b, 0)], relative),
                    Row(squares[vector(b, 1)], relative),
                    Row(squares[vector(b + 1, 0)], relative),
                    Row(squares[vector(b + 1, 1)], relative)};
#pragma unroll
            for (int a = 0; a < kDown; ++a) {
#pragma unroll
                for (int r = 0; r < 4; r += 2) {
                    const int q = query(a, r);
                    const int v = vector(b, r);
                    const Row row(squares[kVectors + q], relative);
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
            withVectors(params.vectors, [&](const auto* data) {
                // A group without a pair has those of lane 0.
                const int64_t at =
                        min(place.first + pair.vector, place.last - 1);
                const int64_t row =
                        place.row(min(pair.query, int(place.numRows) - 1));
                distance = pairDistance<kMetric>(
                        data + at * params.vectors.rowStride,
                        params.vectors.columnStride,
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

    /// Components depth and on of this thread's rows, as store() takes them.
    /// Rows that there are not are others, and their pairs are not looked at.
    template <class T>
    __device__ __forceinline__ void fetch(
            const T* data,
            const TilePlace& place,
            int depth) {
        const int c = min(depth + int(threadIdx.x % kLanes), params.d - 1);
        const int row = threadIdx.x / kLanes;
        const int lastVector =
                int(min(place.last - place.first, int64_t(kVectors))) - 1;
        const int lastQuery = min(int(place.numRows), kQueries) - 1;
        const uint32_t rowStride = uint32_t(params.vectors.rowStride);
        const T* x = data + place.first * params.vectors.rowStride +
                c * params.vectors.columnStride;
        const float* q = params.queries + c;
#pragma unroll
        for (int i = 0; i < kStagedVectors; ++i) {
            const uint32_t at = min(row + i * kRowStep, lastVector);
            next[i] = toFloat(x[at * rowStride]);
        }
#pragma unroll
        for (int i = kStagedVectors; i < kStaged; ++i) {
            const int at = min(row + i * kRowStep - kVectors, lastQuery);
            next[i] = q[place.row(at) * params.d];
        }
        // Numbers far from zero lose less when the first query is subtracted.
        center = kMetric == Metric::L2 ? q[place.row(0) * params.d] : 0.0f;
    }

    __device__ __forceinline__ void resetSquares() {
#pragma unroll
        for (int i = 0; i < kStaged; ++i) {
            squares[i] = 0;
        }
        areIntegers = true;
    }

    /// What fetch() brought, with zeros behind the last component.
    __device__ __forceinline__ void store(int buffer, int depth) {
        const bool isThere = depth + int(threadIdx.x % kLanes) < params.d;
        const float finite = isThere && isfinite(center) ? center : 0.0f;
        const double from = finite;
        areIntegers = areIntegers && isInteger(finite);
#pragma unroll
        for (int i = 0; i < kStaged; ++i) {
            const float component = isThere ? next[i] : 0.0f;
            areIntegers = areIntegers && isInteger(component);
            const double value = double(component) - from;
            squares[i] = __fma_rn(value, value, squares[i]);
            const int row = threadIdx.x / kLanes + i * kRowStep;
            const int c = threadIdx.x % kLanes;
            if (i < kStagedVectors) {
                shared.product.vectors[buffer][row][c] = value;
            } else {
                const int place = queryPlace(row - kVectors, c);
                shared.product.queries[buffer][place] = value;
            }
        }
    }

    /// Not of large ones.
    __device__ __forceinline__ static bool isInteger(float value) {
        constexpr float kInteger = 1.5f * (1 << 23); // its last bit is 1
        return value + kInteger - kInteger == value;
    }

    /// The eight lanes of a row each have a part of its square. Whether those
    /// that this lane stores are finite.
    __device__ __forceinline__ bool storeSquares() {
        static_assert(kStaged >= kLanes);
        // Each step hands half of the first eight rows to the partner.
        const int at = threadIdx.x % kLanes;
        const int row = threadIdx.x / kLanes;
#pragma unroll
        for (int half = kLanes / 2; half >= 1; half /= 2) {
            const bool upper = at & half;
#pragma unroll
            for (int i = 0; i < half; ++i) {
                const double keep = upper ? squares[i + half] : squares[i];
                const double give = upper ? squares[i] : squares[i + half];
                squares[i] = keep + __shfl_xor_sync(kFullWarp, give, half);
            }
#pragma unroll
            for (int i = kLanes; i < kStaged; ++i) {
                squares[i] += __shfl_xor_sync(kFullWarp, squares[i], half);
            }
        }
        shared.product.squares[row + at * kRowStep] = squares[0];
        bool allFinite = isfinite(squares[0]);
        areIntegers = areIntegers && squares[0] < Row::kExactSquares;
#pragma unroll
        for (int i = kLanes; i < kStaged; ++i) {
            if (at == 0) {
                shared.product.squares[row + i * kRowStep] = squares[i];
            }
            allFinite = allFinite && isfinite(squares[i]);
            areIntegers = areIntegers && squares[i] < Row::kExactSquares;
        }
        return allFinite;
    }
};

} // namespace faiss_bits
