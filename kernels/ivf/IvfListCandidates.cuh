/// Canonical distances of candidates, where the queries that probe a list fit
/// shared memory: those of IvfRescore.cuh and IvfFewCandidates.cuh, bit by bit.
///
/// These read a query from the second-level cache for each candidate, 512 bytes
/// of 128 components: with k = 100 that is more than the lists are. Here a
/// block takes groups that follow each other, list by list. It reads the
/// queries of a list once, and the next group is on its way while the
/// candidates of one are scored. Codes are decoded by the lanes of a candidate:
/// a group has about as many candidates as vectors.
///
/// Bound by: not known. One read of the lists that are probed, and conversions
/// to float64, are half of its time (docs/design/ivf_candidates.md).
#pragma once

#include "kernels/ivf/IvfListCandidates.h"
#include "kernels/ivf/IvfRescore.cuh"

namespace faiss_bits {

template <Metric kMetric, ListCoding kCoding>
struct IvfListCandidates {
    static_assert(hasIvfListCandidates(kCoding));
    static constexpr int kThreads = 256;
    static constexpr int kDims = kIvfListDims;
    static_assert(kDims == PartOfQuery::kDims);
    static constexpr bool kIsFloat = kCoding == ListCoding::Float32;
    // Of a multiprocessor. A lane has the tables of its components of codes in
    // registers: read from shared memory they are twice what the queries are.
    static constexpr int kBlocks = kIsFloat ? 4 : 3;
    static constexpr int kOfLane = kIsFloat ? 1 : PartOfQuery::kCount;
    using Value = std::conditional_t<kIsFloat, float, uint8_t>;
    // From component to component: the eight lanes of a candidate meet no bank
    // twice, and copies are of sixteen bytes.
    static constexpr int kPitch = kListGroup + (kIsFloat ? 4 : 16);
    static constexpr int kPieceValues = 16 / sizeof(Value);
    static constexpr int kPieces = kListGroup / kPieceValues;
    static constexpr uint32_t kAtATime = kThreads / kPairLanes;

    struct Centroid {
        alignas(16) float values[kDims]; // in the order of arranged queries
    };
    struct None {};
    struct SharedStorage {
        alignas(16) Value vectors[2][kDims * kPitch];
        std::conditional_t<kIsFloat, None, Centroid> centroid; // of the list
        // Behind it: float queries[mostQueries][kDims].
    };
    static_assert(sizeof(SharedStorage) % 16 == 0);

    static size_t bytesFor(uint32_t mostQueries) {
        return sizeof(SharedStorage) + sizeof(float) * kDims * mostQueries;
    }

    /// 32 vectors of a list, and their candidates; count 0: there are none.
    struct Group {
        uint32_t number; // of all lists'
        uint32_t begin;  // candidate of those in grouped
        uint32_t count;
    };
    /// A list, and its groups.
    struct List {
        uint32_t number;
        uint32_t first;
        uint32_t end;
        const Value* vectors;
    };

    SharedStorage& shared;
    const IvfListCandidatesParams& params;
    float starts[kOfLane] = {}; // of scalar codes
    float steps[kOfLane] = {};

    __device__ __forceinline__ void run() {
        const IvfRescoreParams& rescore = params.rescore;
        const uint32_t numGroups =
                rescore.firstGroups[rescore.search.lists.numLists];
        // Side by side, so that few lists' queries are read twice.
        const uint32_t each = (numGroups + gridDim.x - 1) / gridDim.x;
        const uint32_t begin = blockIdx.x * each;
        if (begin >= numGroups) {
            return;
        }
        const uint32_t end = min(begin + each, numGroups);
        if constexpr (!kIsFloat) {
            readTables();
        }
        // What is known of groups comes some groups ahead: they are read one
        // after another, and each read would be waited for.
        Group next = groupAt(begin, end);
        Group following = groupAt(begin + 1, end);
        skip(next, following, end);
        List list = listOf(listOfGroup(next.number));
        if (next.count > 0) {
            copy(list, next, 0);
        }
        IvfCandidate candidate = candidateOf(next, 0);
        uint32_t staged = ~0u; // list whose queries are there
        uint32_t slot = 0;
        while (next.count > 0) {
            const Group now = next;
            const IvfCandidate first = candidate;
            if (list.number != staged) {
                staged = list.number;
                copyQueries(staged);
                endCopies();
            }
            next = following;
            following = groupAt(next.number + 1, end);
            skip(next, following, end);
            if (next.count > 0) {
                while (next.number >= list.end) {
                    list = listOf(list.number + 1);
                }
                copy(list, next, slot ^ 1);
                candidate = candidateOf(next, 0);
            } else {
                endCopies();
            }
            waitForCopies<1>();
            __syncthreads();
            rescore.search.d == kDims ? score<true>(now, first, slot)
                                      : score<false>(now, first, slot);
            __syncthreads(); // it is read
            slot ^= 1;
        }
        waitForCopies<0>();
    }

   private:
    /// [mostQueries, kDims], of a list.
    __device__ __forceinline__ float* queries() const {
        return reinterpret_cast<float*>(&shared + 1);
    }

    /// The last list whose first group is no later. By the block, in two turns
    /// of as many reads at once.
    __device__ __forceinline__ uint32_t listOfGroup(uint32_t group) const {
        const uint32_t* firstGroups = params.rescore.firstGroups;
        uint32_t low = 0;
        uint32_t count = uint32_t(params.rescore.search.lists.numLists);
        while (count > 1) {
            const uint32_t step = (count + kThreads - 1) / kThreads;
            const uint32_t at = threadIdx.x * step;
            const uint32_t before = __syncthreads_count(
                    at < count && firstGroups[low + at] <= group);
            low += (before - 1) * step; // the first one is
            count = min(step, count - (before - 1) * step);
        }
        return low;
    }

    __device__ __forceinline__ List listOf(uint32_t number) const {
        const uint32_t* firstGroups = params.rescore.firstGroups;
        return {number,
                firstGroups[number],
                firstGroups[number + 1],
                static_cast<const Value*>(
                        params.rescore.search.lists.vectors[number])};
    }

    /// Of the block's, which end at `end`.
    __device__ __forceinline__ Group
    groupAt(uint32_t number, uint32_t end) const {
        if (number >= end) {
            return {end, 0, 0};
        }
        return {number,
                params.rescore.groupBegins[number],
                params.rescore.groupCounts[number]};
    }

    /// Groups without candidates. following: the one behind `next`.
    __device__ __forceinline__ void skip(
            Group& next,
            Group& following,
            uint32_t end) const {
        while (next.count == 0 && next.number < end) {
            next = following;
            following = groupAt(next.number + 1, end);
        }
    }

    /// This thread's, of a group's candidates `first` and on; the last one,
    /// behind the last. Before it is needed.
    __device__ __forceinline__ IvfCandidate
    candidateOf(const Group& group, uint32_t first) const {
        const uint32_t i = first + threadIdx.x / kPairLanes;
        return group.count > 0
                ? params.rescore.grouped[group.begin + min(i, group.count - 1)]
                : IvfCandidate{};
    }

    __device__ __forceinline__ static void copyPiece(
            void* to,
            const void* from) {
        copyAsync(sharedAddress(to), from);
    }

    /// Begins to copy a group, which is there as a whole.
    __device__ __forceinline__ void copy(
            const List& list,
            const Group& group,
            uint32_t slot) const {
        const IvfParams& search = params.rescore.search;
        const Value* from = list.vectors +
                int64_t(group.number - list.first) * kListGroup * search.d;
        Value* to = shared.vectors[slot];
        if (reinterpret_cast<uintptr_t>(from) % 16 == 0) {
#pragma unroll 4
            for (int i = threadIdx.x; i < kPieces * search.d; i += kThreads) {
                copyPiece(
                        to + i / kPieces * kPitch + i % kPieces * kPieceValues,
                        from + i * kPieceValues);
            }
        } else {
            for (int i = threadIdx.x; i < kListGroup * search.d;
                 i += kThreads) {
                to[i / kListGroup * kPitch + i % kListGroup] = from[i];
            }
        }
        endCopies();
    }

    /// Begins to copy the queries of a list, and what is added to its vectors;
    /// those of the list before are read.
    __device__ __forceinline__ void copyQueries(uint32_t list) const {
        constexpr int kFours = kDims / 4;
        const IvfRescoreParams& rescore = params.rescore;
        const IvfParams& search = rescore.search;
        const uint32_t count = min(search.counts[list], params.mostQueries);
        const uint32_t* rows = search.pairRows + search.firstPairs[list];
        for (uint32_t i = threadIdx.x; i < count * kFours; i += kThreads) {
            copyPiece(
                    queries() + 4 * i,
                    rescore.arranged + int64_t(rows[i / kFours]) * kDims +
                            i % kFours * 4);
        }
        if constexpr (!kIsFloat) {
            const float* centroids = search.lists.decoding.centroids;
            if (centroids && threadIdx.x < kDims) {
                const int c = PartOfQuery::componentAt(int(threadIdx.x));
                if (c < search.d) {
                    shared.centroid.values[threadIdx.x] =
                            centroids[int64_t(list) * search.d + c];
                }
            }
        }
    }

    __device__ __forceinline__ void readTables() {
        const IvfParams& search = params.rescore.search;
#pragma unroll
        for (int i = 0; i < kOfLane; ++i) {
            const int c = i * kPairLanes + int(threadIdx.x) % kPairLanes;
            starts[i] = c < search.d ? search.starts[c] : 0.0f;
            steps[i] = c < search.d ? search.steps[c] : 0.0f;
        }
        if (threadIdx.x < kDims) {
            shared.centroid.values[threadIdx.x] = 0;
        }
    }

    /// Four components of this lane, of a row in the order of arranged queries.
    __device__ __forceinline__ static float4 fourOf(const float* row, int i) {
        return reinterpret_cast<const float4*>(
                row)[i * kPairLanes + threadIdx.x % kPairLanes];
    }

    template <bool kIsWhole>
    __device__ __forceinline__ void score(
            const Group& group,
            IvfCandidate candidate,
            uint32_t slot) const {
        const IvfRescoreParams& rescore = params.rescore;
        // The warps' candidates alone: the others are done.
        for (uint32_t first = 0; first < group.count; first += kAtATime) {
            if (first + threadIdx.x / kWarpSize * (kWarpSize / kPairLanes) >=
                group.count) {
                return;
            }
            const bool isThere = first + threadIdx.x / kPairLanes < group.count;
            const IvfCandidate now = candidate;
            if (first + kAtATime < group.count) {
                candidate = candidateOf(group, first + kAtATime);
            }
            const uint32_t rank = now.rowAndPlace / kListGroup;
            const Value* x =
                    shared.vectors[slot] + now.rowAndPlace % kListGroup;
            double distance = 0;
            if (rank < params.mostQueries) {
                distance = distanceOf<kIsWhole>(x, queries() + rank * kDims);
            } else {
                distance = distanceOf<kIsWhole>(
                        x,
                        rescore.arranged +
                                int64_t(now.number / rescore.candidates) *
                                        kDims);
            }
            // Lanes of different candidates come together again.
            __syncwarp();
            distance = joined(distance);
            setDistance(rescore, now, isThere, distance);
        }
    }

    /// This lane's slot of the sum.
    template <bool kIsWhole>
    __device__ __forceinline__ double distanceOf(
            const Value* x,
            const float* query) const {
        using Terms = canonical::Terms<kMetric>;
        static_assert(Terms::kSums == 1);
        const IvfParams& search = params.rescore.search;
        const int lane = threadIdx.x % kPairLanes;
        double sum[1] = {};
#pragma unroll
        for (int i = 0; i < PartOfQuery::kCount / 4; ++i) {
            const float4 q4 = fourOf(query, i);
            const float q[4] = {q4.x, q4.y, q4.z, q4.w};
            float xs[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int c = (4 * i + j) * kPairLanes + lane;
                if constexpr (kIsFloat) {
                    xs[j] = x[c * kPitch];
                } else {
                    xs[j] = numberOf(x[c * kPitch]);
                }
            }
            if constexpr (!kIsFloat) {
                decode(xs, i);
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                // Components beyond d are zeros, which no sum notices.
                const int c = (4 * i + j) * kPairLanes + lane;
                const float xc = kIsWhole || c < search.d ? xs[j] : 0.0f;
                Terms::add(sum, double(xc), double(q[j]), search.power);
            }
        }
        return sum[0];
    }

    /// Numbers of codes, of the components that fourOf has.
    __device__ __forceinline__ void decode(float (&xs)[4], int i) const {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            xs[j] = __fmaf_rn(xs[j], steps[4 * i + j], starts[4 * i + j]);
        }
        if (params.rescore.search.lists.decoding.centroids) {
            const float4 four = fourOf(shared.centroid.values, i);
            xs[0] = __fadd_rn(xs[0], four.x);
            xs[1] = __fadd_rn(xs[1], four.y);
            xs[2] = __fadd_rn(xs[2], four.z);
            xs[3] = __fadd_rn(xs[3], four.w);
        }
    }

    /// Of the eight lanes' slots.
    __device__ __forceinline__ static double joined(double slot) {
        using Terms = canonical::Terms<kMetric>;
        double sum[1] = {slot};
        // Slots 0 and 4, then 2 and 6 to them, then the odd ones.
#pragma unroll
        for (int distance = kPairLanes / 2; distance >= 1; distance /= 2) {
            const double other = __shfl_xor_sync(kFullWarp, sum[0], distance);
            sum[0] = Terms::join(sum[0], other);
        }
        return Terms::finish(sum);
    }
};

} // namespace faiss_bits
