/// What is in doubt of a tile of the matrix of distances, where NaN marks such
/// pairs: units of 4 x 4 pairs that have a mark, of rows put in order so that
/// they are few. Included by MarkedPairs.cuh.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/all_pairs/AllPairsLaunch.h"
#include "kernels/knn/certified/TileVectors.cuh"

namespace faiss_bits {

struct MarkedUnits {
    static constexpr int kThreads = 256;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr int kSide = 64;  // queries and vectors of a tile
    static constexpr int kUnit = 4;   // of a unit
    static constexpr int kMost = 128; // units
    static constexpr int kMostGroups = kWarpSize; // of kUnit rows, of a side
    enum Side { kOfQueries, kOfVectors };
    static_assert(kSide == kProductQueries && kSide == kNarrowTile);

    struct SharedStorage {
        uint64_t marks[2][kSide];          // of a row: those of the other side
        uint8_t order[2][kSide];           // rows of a side, by kinds
        uint8_t first[2][kMostGroups + 1]; // places in that order
        uint64_t ofGroups[2][kMostGroups]; // bits of vectors
        uint32_t numGroups[2];
        uint32_t numUnits[kMostGroups]; // of a group of queries
        uint16_t list[kMost];           // a byte for each side: groups
    };

    SharedStorage& shared;
    const AllPairsParams& params;

    /// How many units there are; more than kMost: they are not listed. All
    /// threads call it, with the block in step before and after.
    __device__ __forceinline__ uint32_t find(const TilePlace& place) const {
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
            return kMost + 1;
        }
        return listUnits();
    }

    /// Rows of a side that have marks.
    __device__ __forceinline__ int numRows(int side) const {
        return shared.first[side][shared.numGroups[side]];
    }

   private:
    __device__ __forceinline__ static int lane() {
        return threadIdx.x % kWarpSize;
    }
    __device__ __forceinline__ static int warp() {
        return threadIdx.x / kWarpSize;
    }

    /// Of a row, as digits write them: in twos, the last with what pads the
    /// row.
    __device__ __forceinline__ static float2 twoOf(
            const float* row,
            const TilePlace& place,
            int column) {
        return place.first + column < place.last
                ? *reinterpret_cast<const float2*>(row + column)
                : float2{};
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
                const float2 left = twoOf(row, place, column);
                const float2 right = twoOf(row, place, column + 2);
                read[i] = {left.x, left.y, right.x, right.y};
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

    /// The units that have a mark, to shared.list if there is room; returns
    /// how many they are. Those of the same queries side by side.
    __device__ __forceinline__ uint32_t listUnits() const {
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
            if ((found[i] >> lane() & 1) != 0 && at < kMost) {
                shared.list[at] = uint16_t(q << 8 | uint32_t(lane()));
            }
        }
        __syncthreads();
        return __reduce_add_sync(kFullWarp, ofLane);
    }
};

} // namespace faiss_bits
