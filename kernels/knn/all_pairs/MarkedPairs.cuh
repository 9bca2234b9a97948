/// The marked pairs of a tile of the matrix of distances: a NaN says that a
/// pair is in doubt. Where these are the pairs of some kinds of rows, as of
/// copies that differ in their last bits, queries of a kind stand side by side,
/// and vectors too, and units of 4 x 4 pairs are computed by their definition:
/// those that have a marked pair.
///
/// Eight lanes have a unit, one for each slot of the sums, and a warp four,
/// most often of the same queries. A warp has several units, as many as
/// registers hold the sums of, so that the components of a tile are read once.
///
/// Bound by: float64, by L2 three operations a component and pair of a unit.
#pragma once

#include "kernels/knn/all_pairs/AllPairsLaunch.h"
#include "kernels/knn/certified/HeldComponent.cuh"

namespace faiss_bits {

template <Metric kMetric>
struct MarkedPairs {
    using Terms = canonical::Terms<kMetric>;
    using Vectors = MatrixOfVectors;
    static_assert(Terms::kSums == 1);

    static constexpr int kThreads = 256;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr int kSide = 64; // queries and vectors of a tile
    static constexpr int kUnit = 4;  // of a unit
    static constexpr int kPairs = kUnit * kUnit;
    static constexpr int kMostGroups = kWarpSize; // of kUnit rows, of a side
    static constexpr int kOfWarp = kWarpSize / kPairLanes; // units at a time
    static constexpr int kUnitsOfLane = 4;
    static constexpr int kMostUnits = kUnitsOfLane * kOfWarp * kWarps;
    static constexpr int kDepth = kWarpSize; // components at a time
    // Two more: rows four apart are found in different banks.
    static constexpr int kPitch = kDepth + 2;
    // The last unit may look behind the last row.
    static constexpr int kRoom = kSide + kUnit;
    static constexpr int kLoads = 2 * kSide / kWarps; // rows of a warp
    enum Side { kOfQueries, kOfVectors };
    static_assert(kSide == kProductQueries && kSide == kNarrowTile);

    struct SharedStorage {
        double components[2][2][kRoom][kPitch]; // of two steps, of both sides
        uint64_t marks[2][kSide];          // of a row: those of the other side
        uint8_t order[2][kSide];           // rows of a side, by kinds
        uint8_t first[2][kMostGroups + 1]; // places in that order
        uint64_t ofGroups[2][kMostGroups]; // bits of vectors
        uint32_t numGroups[2];
        uint32_t numUnits[kMostGroups]; // of a group of queries
        uint16_t units[kMostUnits];
    };

    SharedStorage& shared;
    const AllPairsParams& params;

    /// Writes the canonical distances of the marked pairs and of some others,
    /// or returns false where they are too many. All threads call it, and the
    /// block need not be in step.
    __device__ __forceinline__ bool run(const TilePlace& place) const {
        __syncthreads();
        readMarks(place);
        __syncthreads();
        turnMarks();
        __syncthreads();
        if (threadIdx.x / kWarpSize < 2) {
            findKinds(threadIdx.x / kWarpSize);
        }
        __syncthreads();
        if (shared.numGroups[kOfQueries] > kMostGroups ||
            shared.numGroups[kOfVectors] > kMostGroups) {
            return false;
        }
        const uint32_t units = findUnits();
        if (units > kMostUnits) {
            return false;
        }
        if (units > 0) {
            compute(place, units);
        }
        return true;
    }

   private:
    __device__ __forceinline__ static int lane() {
        return threadIdx.x % kWarpSize;
    }
    __device__ __forceinline__ static int warp() {
        return threadIdx.x / kWarpSize;
    }

    /// Of the queries: four threads a row.
    __device__ __forceinline__ void readMarks(const TilePlace& place) const {
        constexpr int kOfRow = kThreads / kSide;
        constexpr int kReads = kSide / kOfRow / 4; // of four columns
        const uint32_t q = threadIdx.x / kOfRow;
        const int part = threadIdx.x % kOfRow;
        uint64_t marks = 0;
        if (q < place.numRows) {
            const float* row = params.distances +
                    (place.firstRow + int64_t(q)) * params.stride + place.first;
            float4 read[kReads];
#pragma unroll
            for (int i = 0; i < kReads; ++i) {
                const int column = (i * kOfRow + part) * 4;
                // Rows are padded.
                read[i] = place.first + column < place.last
                        ? *reinterpret_cast<const float4*>(row + column)
                        : float4{};
            }
#pragma unroll
            for (int i = 0; i < kReads; ++i) {
                const int column = (i * kOfRow + part) * 4;
                const float four[] = {
                        read[i].x, read[i].y, read[i].z, read[i].w};
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const bool isMarked = four[j] != four[j] &&
                            place.first + column + j < place.last;
                    marks |= uint64_t(isMarked) << (column + j);
                }
            }
        }
#pragma unroll
        for (int distance = 1; distance < kOfRow; distance *= 2) {
            marks |= __shfl_xor_sync(kFullWarp, marks, distance);
        }
        if (part == 0) {
            shared.marks[kOfQueries][q] = marks;
        }
    }

    /// Those of the vectors.
    __device__ __forceinline__ void turnMarks() const {
        constexpr int kOfWarpColumns = kSide / kWarps;
        const uint64_t low = shared.marks[kOfQueries][lane()];
        const uint64_t high = shared.marks[kOfQueries][kWarpSize + lane()];
#pragma unroll
        for (int i = 0; i < kOfWarpColumns; ++i) {
            const int v = warp() * kOfWarpColumns + i;
            const uint64_t marks = __ballot_sync(kFullWarp, low >> v & 1) |
                    uint64_t(__ballot_sync(kFullWarp, high >> v & 1))
                            << kWarpSize;
            if (lane() == i) {
                shared.marks[kOfVectors][v] = marks;
            }
        }
    }

    /// The rows of a side that have marks, those of a kind side by side in
    /// groups of up to kUnit: at least half of the marks of each are marks of
    /// the first one of its kind. One warp calls it.
    __device__ __forceinline__ void findKinds(int side) const {
        const uint64_t(&marks)[kSide] = shared.marks[side];
        const uint32_t before = (1u << lane()) - 1;
        const uint64_t mine[2] = {marks[lane()], marks[kWarpSize + lane()]};
        bool isLeft[2] = {mine[0] != 0, mine[1] != 0};
        uint32_t place = 0;
        uint32_t groups = 0;
        while (groups <= kMostGroups) {
            const uint32_t low = __ballot_sync(kFullWarp, isLeft[0]);
            const uint32_t high = __ballot_sync(kFullWarp, isLeft[1]);
            if ((low | high) == 0) {
                break;
            }
            const uint64_t ofFirst =
                    marks[low != 0 ? __ffs(low) - 1
                                   : kWarpSize + __ffs(high) - 1];
            uint32_t count = 0;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const bool is = isLeft[i] &&
                        2 * __popcll(mine[i] & ofFirst) >= __popcll(mine[i]);
                const uint32_t all = __ballot_sync(kFullWarp, is);
                if (is) {
                    shared.order[side][place + count + __popc(all & before)] =
                            uint8_t(i * kWarpSize + lane());
                    isLeft[i] = false;
                }
                count += __popc(all);
            }
            if (lane() * kUnit < count && groups + lane() < kMostGroups) {
                shared.first[side][groups + lane()] =
                        uint8_t(place + lane() * kUnit);
            }
            place += count;
            groups += (count + kUnit - 1) / kUnit;
        }
        if (lane() == 0) {
            shared.numGroups[side] = groups;
            shared.first[side][min(groups, uint32_t(kMostGroups))] =
                    uint8_t(place);
        }
    }

    /// The units that have a mark, to shared.units if there is room; returns
    /// how many they are. Those of the same queries side by side.
    __device__ __forceinline__ uint32_t findUnits() const {
        const uint32_t numQueries = shared.numGroups[kOfQueries];
        const uint32_t numVectors = shared.numGroups[kOfVectors];
        if (warp() < 2) {
            // What the queries of a group have marks of, and the vectors of
            // one.
            const int side = warp();
            uint64_t bits = 0;
            if (lane() < int(shared.numGroups[side])) {
                for (int i = shared.first[side][lane()];
                     i < shared.first[side][lane() + 1];
                     ++i) {
                    const int row = shared.order[side][i];
                    bits |= side == kOfQueries ? shared.marks[kOfQueries][row]
                                               : uint64_t(1) << row;
                }
            }
            shared.ofGroups[side][lane()] = bits;
        }
        __syncthreads();
        uint32_t found[kMostGroups / kWarps];
#pragma unroll
        for (int i = 0; i < kMostGroups / kWarps; ++i) {
            const uint32_t q = i * kWarps + warp();
            const bool is = q < numQueries && lane() < int(numVectors) &&
                    (shared.ofGroups[kOfQueries][q] &
                     shared.ofGroups[kOfVectors][lane()]) != 0;
            found[i] = __ballot_sync(kFullWarp, is);
            if (lane() == 0) {
                shared.numUnits[q] = __popc(found[i]);
            }
        }
        __syncthreads();
        const uint32_t ofLane = shared.numUnits[lane()];
#pragma unroll
        for (int i = 0; i < kMostGroups / kWarps; ++i) {
            const uint32_t q = i * kWarps + warp();
            const uint32_t at =
                    __reduce_add_sync(
                            kFullWarp, lane() < int(q) ? ofLane : 0u) +
                    __popc(found[i] & ((1u << lane()) - 1));
            if ((found[i] >> lane() & 1) != 0 && at < kMostUnits) {
                shared.units[at] = uint16_t(q << 8 | uint32_t(lane()));
            }
        }
        __syncthreads();
        return __reduce_add_sync(kFullWarp, ofLane);
    }

    /// Component depth + lane of this warp's rows.
    __device__ __forceinline__ void fetch(
            const TilePlace& place,
            int depth,
            uint32_t (&next)[kLoads]) const {
        const CertifiedParams& search = params.search;
        const int c = depth + lane();
        const int numQueries = numRows(kOfQueries);
        const int numVectors = numRows(kOfVectors);
        Vectors::with(search, [&](const auto& vectors) {
            using Held = HeldComponent<std::remove_cvref_t<decltype(vectors)>>;
            const auto column = vectors.column(place, c);
#pragma unroll
            for (int i = 0; i < kLoads / 2; ++i) {
                const int at = warp() + i * kWarps;
                next[i] = c < search.d && at < numVectors
                        ? Held::at(column, shared.order[kOfVectors][at])
                        : 0;
            }
        });
#pragma unroll
        for (int i = 0; i < kLoads / 2; ++i) {
            const int at = warp() + i * kWarps;
            next[kLoads / 2 + i] = c < search.d && at < numQueries
                    ? heldBits(
                              search.queries
                                      [place.row(shared.order[kOfQueries][at]) *
                                               search.d +
                                       c])
                    : 0;
        }
    }

    __device__ __forceinline__ void store(
            int buffer,
            const uint32_t (&next)[kLoads]) const {
        auto& to = shared.components[buffer];
        Vectors::with(params.search, [&](const auto& vectors) {
            using Held = HeldComponent<std::remove_cvref_t<decltype(vectors)>>;
#pragma unroll
            for (int i = 0; i < kLoads / 2; ++i) {
                to[kOfVectors][warp() + i * kWarps][lane()] =
                        double(Held::numberOf(next[i]));
            }
        });
#pragma unroll
        for (int i = 0; i < kLoads / 2; ++i) {
            to[kOfQueries][warp() + i * kWarps][lane()] =
                    double(heldNumber<float>(next[kLoads / 2 + i]));
        }
    }

    __device__ __forceinline__ int numRows(int side) const {
        return shared.first[side][shared.numGroups[side]];
    }

    /// The unit of this lane, the j-th; those that there are not are the last.
    __device__ __forceinline__ uint32_t
    unitOf(int j, uint32_t units, bool& isThere) const {
        const uint32_t number =
                (j * kWarps + warp()) * kOfWarp + lane() / kPairLanes;
        isThere = number < units;
        return shared.units[min(number, units - 1)];
    }

    __device__ __forceinline__ void compute(
            const TilePlace& place,
            uint32_t units) const {
        const CertifiedParams& search = params.search;
        const int slot = threadIdx.x % kPairLanes;
        double sums[kUnitsOfLane][kPairs] = {};
        uint32_t queries[kUnitsOfLane]; // where rows begin in a buffer
        uint32_t vectors[kUnitsOfLane];
        int mine = 0; // of the warp, at a time
#pragma unroll
        for (int j = 0; j < kUnitsOfLane; ++j) {
            bool isThere = false;
            const uint32_t unit = unitOf(j, units, isThere);
            queries[j] = shared.first[kOfQueries][unit >> 8] * kPitch + slot;
            vectors[j] = shared.first[kOfVectors][unit & 0xFF] * kPitch + slot;
            mine += __any_sync(kFullWarp, isThere);
        }
        uint32_t next[kLoads];
        fetch(place, 0, next);
        store(0, next);
        __syncthreads();
        const int steps = (search.d + kDepth - 1) / kDepth;
        for (int step = 0; step < steps; ++step) {
            const bool isLast = step + 1 == steps;
            if (!isLast) {
                fetch(place, (step + 1) * kDepth, next);
            }
            const double* ofQueries =
                    &shared.components[step % 2][kOfQueries][0][0];
            const double* ofVectors =
                    &shared.components[step % 2][kOfVectors][0][0];
            // Those behind the last are zeros, which no sum notices.
#pragma unroll
            for (int c = 0; c < kDepth; c += kPairLanes) {
                if (step * kDepth + c >= search.d) {
                    break;
                }
#pragma unroll
                for (int j = 0; j < kUnitsOfLane; ++j) {
                    if (j < mine) {
                        addComponent(
                                ofQueries + queries[j] + c,
                                ofVectors + vectors[j] + c,
                                sums[j]);
                    }
                }
            }
            if (!isLast) {
                store((step + 1) % 2, next);
                __syncthreads();
            }
        }
#pragma unroll
        for (int j = 0; j < kUnitsOfLane; ++j) {
            if (j < mine) {
                bool isThere = false;
                const uint32_t unit = unitOf(j, units, isThere);
                finish(place, unit, isThere, sums[j]);
            }
        }
    }

    __device__ __forceinline__ void addComponent(
            const double* queries,
            const double* vectors,
            double (&sums)[kPairs]) const {
        double q[kUnit];
        double x[kUnit];
#pragma unroll
        for (int i = 0; i < kUnit; ++i) {
            q[i] = queries[i * kPitch];
            x[i] = vectors[i * kPitch];
        }
#pragma unroll
        for (int a = 0; a < kUnit; ++a) {
#pragma unroll
            for (int b = 0; b < kUnit; ++b) {
                double pair[1] = {sums[a * kUnit + b]};
                Terms::add(pair, x[b], q[a], params.search.power);
                sums[a * kUnit + b] = pair[0];
            }
        }
    }

    /// The sums of a unit's eight lanes become distances: two of each.
    __device__ __forceinline__ void finish(
            const TilePlace& place,
            uint32_t unit,
            bool isThere,
            double (&sums)[kPairs]) const {
        constexpr int kHeld = kPairs / kPairLanes;
        joinHalves<kPairs, kPairLanes / 2>(sums);
        if (!isThere) {
            return;
        }
        const int slot = threadIdx.x % kPairLanes;
        const int pair = (slot & 4 ? kPairs / 2 : 0) +
                (slot & 2 ? kPairs / 4 : 0) + (slot & 1 ? kPairs / 8 : 0);
        const uint8_t* first = shared.first[kOfQueries] + (unit >> 8);
        const int q = first[0] + pair / kUnit;
        if (q >= first[1]) {
            return;
        }
        float* row = params.distances +
                (place.firstRow + int64_t(shared.order[kOfQueries][q])) *
                        params.stride +
                place.first;
        first = shared.first[kOfVectors] + (unit & 0xFF);
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            const int v = first[0] + pair % kUnit + i;
            if (v < first[1]) {
                row[shared.order[kOfVectors][v]] =
                        canonical::toFloat32(Terms::finish(&sums[i]));
            }
        }
    }

    /// Joins slots 0 and 4, then 2 and 6 to them, then the odd ones. Each step
    /// hands half of the pairs to the partner and takes the other half.
    template <int Count, int Distance>
    __device__ __forceinline__ static void joinHalves(double* sums) {
        if constexpr (Distance >= 1) {
            constexpr int kHalf = Count / 2;
            const bool upper = threadIdx.x & Distance;
#pragma unroll
            for (int i = 0; i < kHalf; ++i) {
                const double keep = upper ? sums[i + kHalf] : sums[i];
                const double give = upper ? sums[i] : sums[i + kHalf];
                sums[i] = Terms::join(
                        keep, __shfl_xor_sync(kFullWarp, give, Distance));
            }
            joinHalves<kHalf, Distance / 2>(sums);
        }
    }
};

} // namespace faiss_bits
