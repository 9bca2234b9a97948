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

#include "kernels/knn/all_pairs/MarkedUnits.cuh"
#include "kernels/knn/certified/HeldComponent.cuh"

namespace faiss_bits {

template <Metric kMetric>
struct MarkedPairs {
    using Terms = canonical::Terms<kMetric>;
    using Vectors = MatrixOfVectors;
    static_assert(Terms::kSums == 1);

    using Units = MarkedUnits;
    static constexpr int kThreads = Units::kThreads;
    static constexpr int kWarps = Units::kWarps;
    static constexpr int kSide = Units::kSide;
    static constexpr int kUnit = Units::kUnit;
    static constexpr int kPairs = kUnit * kUnit;
    static constexpr int kOfWarp = kWarpSize / kPairLanes; // units at a time
    static constexpr int kUnitsOfLane = Units::kMost / (kOfWarp * kWarps);
    static constexpr int kDepth = kWarpSize; // components at a time
    // Two more: rows four apart are found in different banks.
    static constexpr int kPitch = kDepth + 2;
    // The last unit may look behind the last row.
    static constexpr int kRoom = kSide + kUnit;
    static constexpr int kLoads = 2 * kSide / kWarps; // rows of a warp
    static constexpr int kOfQueries = Units::kOfQueries;
    static constexpr int kOfVectors = Units::kOfVectors;
    static_assert(kUnitsOfLane * kOfWarp * kWarps == Units::kMost);

    struct SharedStorage {
        double components[2][2][kRoom][kPitch]; // of two steps, of both sides
        typename Units::SharedStorage units;
    };

    SharedStorage& shared;
    const AllPairsParams& params;

    /// Writes the canonical distances of the marked pairs and of some others,
    /// or returns false where they are too many. All threads call it, and the
    /// block need not be in step.
    __device__ __forceinline__ bool run(const TilePlace& place) const {
        __syncthreads();
        const uint32_t units = marked().find(place);
        if (units > Units::kMost) {
            return false;
        }
        if (units > 0) {
            compute(place, units);
        }
        return true;
    }

   private:
    __device__ __forceinline__ Units marked() const {
        return {shared.units, params};
    }
    __device__ __forceinline__ static int lane() {
        return threadIdx.x % kWarpSize;
    }
    __device__ __forceinline__ static int warp() {
        return threadIdx.x / kWarpSize;
    }

    /// Component depth + lane of this warp's rows.
    __device__ __forceinline__ void fetch(
            const TilePlace& place,
            int depth,
            uint32_t (&next)[kLoads]) const {
        const CertifiedParams& search = params.search;
        const int c = depth + lane();
        const int numQueries = marked().numRows(kOfQueries);
        const int numVectors = marked().numRows(kOfVectors);
        Vectors::with(search, [&](const auto& vectors) {
            using Held = HeldComponent<std::remove_cvref_t<decltype(vectors)>>;
            const auto column = vectors.column(place, c);
#pragma unroll
            for (int i = 0; i < kLoads / 2; ++i) {
                const int at = warp() + i * kWarps;
                next[i] = c < search.d && at < numVectors
                        ? Held::at(column, shared.units.order[kOfVectors][at])
                        : 0;
            }
        });
#pragma unroll
        for (int i = 0; i < kLoads / 2; ++i) {
            const int at = warp() + i * kWarps;
            next[kLoads / 2 + i] = c < search.d && at < numQueries
                    ? heldBits(search.queries
                                       [place.row(shared.units.order[kOfQueries]
                                                                    [at]) *
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

    /// The unit of this lane, the j-th; those that there are not are the last.
    __device__ __forceinline__ uint32_t
    unitOf(int j, uint32_t units, bool& isThere) const {
        const uint32_t number =
                (j * kWarps + warp()) * kOfWarp + lane() / kPairLanes;
        isThere = number < units;
        return shared.units.list[min(number, units - 1)];
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
            queries[j] =
                    shared.units.first[kOfQueries][unit >> 8] * kPitch + slot;
            vectors[j] =
                    shared.units.first[kOfVectors][unit & 0xFF] * kPitch + slot;
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
        const uint8_t* first = shared.units.first[kOfQueries] + (unit >> 8);
        const int q = first[0] + pair / kUnit;
        if (q >= first[1]) {
            return;
        }
        float* row = params.distances +
                (place.firstRow + int64_t(shared.units.order[kOfQueries][q])) *
                        params.stride +
                place.first;
        first = shared.units.first[kOfVectors] + (unit & 0xFF);
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            const int v = first[0] + pair % kUnit + i;
            if (v < first[1]) {
                row[shared.units.order[kOfVectors][v]] =
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
