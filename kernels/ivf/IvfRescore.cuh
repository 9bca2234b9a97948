/// Canonical distances of what a scan by estimates has found: of 32 vectors of
/// a list at a time, which come through shared memory once for all queries that
/// they are candidates of.
///
/// Bound by: one read of the lists that are probed. Lists of float32 are copied
/// while the vectors before them are used.
#pragma once

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/ivf/IvfFewCandidates.cuh"
#include "kernels/ivf/IvfQueryParts.cuh"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

constexpr int kIvfRescoreThreads = 256;

/// Adds the terms of components begin and on of a pair, as many as a part has;
/// kIsWhole: all of them are below d.
template <Metric kMetric, bool kIsWhole, class Vector>
__device__ __forceinline__ void addPart(
        double (&sum)[1],
        const Vector& x,
        const PartOfQuery& part,
        int begin,
        int d,
        const canonical::Power& power) {
    const int lane = threadIdx.x % kPairLanes;
#pragma unroll
    for (int i = 0; i < PartOfQuery::kCount; ++i) {
        const int c = begin + lane + i * kPairLanes;
        // Components beyond d are zeros, which no sum notices.
        const float xc = kIsWhole || c < d ? x(c) : 0.0f;
        canonical::Terms<kMetric>::add(
                sum, double(xc), double(part.values[i]), power);
    }
}

/// pairDistance() of an arranged query whose first part is loaded. then():
/// called when the part is used.
template <Metric kMetric, class Vector, class Then>
__device__ __forceinline__ double pairDistance(
        const Vector& x,
        PartOfQuery& part,
        const float* arranged,
        int d,
        const canonical::Power& power,
        const Then& then) {
    using Terms = canonical::Terms<kMetric>;
    static_assert(Terms::kSums == 1);
    double sum[1] = {};
    for (int begin = 0; begin < d; begin += PartOfQuery::kDims) {
        if (begin > 0) {
            part.load(arranged, begin, d);
        }
        if (begin + PartOfQuery::kDims <= d) {
            addPart<kMetric, true>(sum, x, part, begin, d, power);
        } else {
            addPart<kMetric, false>(sum, x, part, begin, d, power);
        }
    }
    then();
    // Slots 0 and 4, then 2 and 6 to them, then the odd ones.
#pragma unroll
    for (int distance = kPairLanes / 2; distance >= 1; distance /= 2) {
        const double other = __shfl_xor_sync(kFullWarp, sum[0], distance);
        sum[0] = Terms::join(sum[0], other);
    }
    return Terms::finish(sum);
}

template <Metric kMetric, ListCoding kCoding>
struct IvfRescore {
    static constexpr int kThreads = kIvfRescoreThreads;
    /// Of a multiprocessor, beside each other's registers.
    static constexpr int kMostBlocks = kCoding == ListCoding::Float32 ? 6 : 4;
    // Words from component to component, and from vector to vector: the lanes
    // of a candidate read eight components. Copies are of sixteen bytes.
    static constexpr int kPitch = kListGroup + 4;
    static constexpr uint32_t kAtATime = kThreads / kPairLanes;
    static constexpr int kPart = 8; // components that are decoded together

    const IvfRescoreParams& params;
    float* vectors; // [params.stages, d, kPitch]

    __device__ __forceinline__ void run() {
        const uint32_t numGroups = params.numPlaced[kIvfManyPlaced];
        if (blockIdx.x >= numGroups) {
            return;
        }
        if constexpr (kCoding == ListCoding::Float32) {
            if (params.stages > 1) {
                return runAhead(numGroups);
            }
        }
        IvfGroup next = groupAt(blockIdx.x, numGroups);
        for (uint32_t i = blockIdx.x; i < numGroups; i += gridDim.x) {
            const IvfGroup group = next;
            next = groupAt(uint64_t(i) + gridDim.x, numGroups);
            const TilePlace place = placeOfGroup(group);
            const IvfCandidate first = firstOf(group);
            if (params.stages > 0) {
                __syncthreads(); // those of the group before are read
                stage(place);
                PartOfQuery part;
                part.load(arrangedOf(first), 0, dimsOf(0, group.count));
                __syncthreads();
                scoreStaged(vectors, group.begin, group.count, first, part);
            } else {
                score(place, group.begin, group.count, first);
            }
        }
    }

   private:
    /// With a group on its way while the one before it is used, and the first
    /// candidates of it.
    __device__ __forceinline__ void runAhead(uint32_t numGroups) const {
        IvfGroup next = groupAt(blockIdx.x, numGroups);
        IvfGroup following =
                groupAt(uint64_t(blockIdx.x) + gridDim.x, numGroups);
        copy(placeOfGroup(next), vectors);
        IvfCandidate candidate = firstOf(next);
        uint32_t slot = 0;
        for (uint32_t i = blockIdx.x; i < numGroups; i += gridDim.x) {
            const uint32_t begin = next.begin;
            const uint32_t count = next.count;
            const IvfCandidate first = candidate;
            PartOfQuery part;
            part.load(arrangedOf(first), 0, dimsOf(0, count));
            const float* of = vectors + slot * params.search.d * kPitch;
            slot ^= 1;
            next = following;
            if (numGroups - i > gridDim.x) {
                copy(placeOfGroup(next),
                     vectors + slot * params.search.d * kPitch);
                candidate = firstOf(next);
            } else {
                endCopies();
            }
            following = groupAt(i + 2 * uint64_t(gridDim.x), numGroups);
            waitForCopies<1>();
            __syncthreads();
            scoreStaged(of, begin, count, first, part);
            __syncthreads(); // it is read
        }
    }

    /// A group of many candidates; the last one, behind the last.
    __device__ __forceinline__ IvfGroup
    groupAt(uint64_t number, uint32_t numGroups) const {
        return params
                .groups[params.mostGroups - 1 -
                        min(number, uint64_t(numGroups - 1))];
    }

    /// This thread's, of a group's candidates `first` and on; the last one,
    /// behind the last. Before it is needed.
    __device__ __forceinline__ IvfCandidate
    candidateOf(uint32_t first, uint32_t begin, uint32_t count) const {
        return params.grouped
                [begin + min(first + threadIdx.x / kPairLanes, count - 1)];
    }
    __device__ __forceinline__ IvfCandidate
    firstOf(const IvfGroup& group) const {
        return candidateOf(0, group.begin, group.count);
    }

    /// Of this thread's candidate, `first` and on, of `count`; 0: there is
    /// none.
    __device__ __forceinline__ int dimsOf(uint32_t first, uint32_t count)
            const {
        return first + threadIdx.x / kPairLanes < count ? params.search.d : 0;
    }

    /// Begins to copy 32 vectors of an interleaved list, where a group is there
    /// as a whole.
    __device__ __forceinline__ void copy(const TilePlace& place, float* to)
            const {
        constexpr int kFours = kListGroup / 4;
        const auto* from = static_cast<const float*>(place.list) +
                place.first * params.search.d;
        const uint32_t shared = sharedAddress(to);
#pragma unroll 4
        for (int i = threadIdx.x; i < kFours * params.search.d; i += kThreads) {
            const int at = i / kFours * kPitch + i % kFours * 4;
            copyAsync(shared + uint32_t(sizeof(float)) * at, from + 4 * i);
        }
        endCopies();
    }

    __device__ __forceinline__ void stage(const TilePlace& place) const {
        const int d = params.search.d;
        const int numVectors =
                int(min(place.last - place.first, int64_t(kListGroup)));
        const bool isRows = params.search.lists.layout == ListLayout::Rows;
        if constexpr (kCoding == ListCoding::Float32) {
            if (!isRows) {
                copy(place, vectors);
                waitForCopies<0>();
                return;
            }
        }
        VectorsOfLists<kCoding>::with(params.search, [&](const auto& lists) {
            if (d % kPart == 0) {
                for (int i = threadIdx.x; i < kListGroup * d / kPart;
                     i += kThreads) {
                    const int v = i % kListGroup;
                    const int c = i / kListGroup * kPart;
                    if (v < numVectors) {
                        float xs[kPart];
                        lists.vector(place, v).load(c, xs);
#pragma unroll
                        for (int j = 0; j < kPart; ++j) {
                            vectors[(c + j) * kPitch + v] = xs[j];
                        }
                    }
                }
                return;
            }
            // Threads side by side read what lies side by side.
            for (int i = threadIdx.x; i < kListGroup * d; i += kThreads) {
                const int v = isRows ? i / d : i % kListGroup;
                const int c = isRows ? i % d : i / kListGroup;
                if (v < numVectors) {
                    vectors[c * kPitch + v] = lists.vector(place, v)(c);
                }
            }
        });
    }

    /// The query of a candidate, as lanes take it.
    __device__ __forceinline__ const float* arrangedOf(
            const IvfCandidate& candidate) const {
        return params.arranged +
                int64_t(candidate.rowAndPlace / kListGroup) *
                params.arrangedDims;
    }

    /// Of vectors in shared memory. candidate: the first of this thread, and
    /// the first part of its query.
    __device__ __forceinline__ void scoreStaged(
            const float* staged,
            uint32_t begin,
            uint32_t count,
            IvfCandidate candidate,
            PartOfQuery& part) const {
        for (uint32_t first = 0; first < count; first += kAtATime) {
            const IvfCandidate now = candidate;
            const bool hasMore = first + kAtATime < count;
            if (hasMore) {
                candidate = candidateOf(first + kAtATime, begin, count);
            }
            const int d = dimsOf(first, count);
            const float* x = staged + now.rowAndPlace % kListGroup;
            const double distance = pairDistance<kMetric>(
                    [&](int c) { return x[c * kPitch]; },
                    part,
                    arrangedOf(now),
                    d,
                    params.search.power,
                    [&] {
                        if (hasMore) {
                            part.load(
                                    arrangedOf(candidate),
                                    0,
                                    dimsOf(first + kAtATime, count));
                        }
                    });
            setDistance(params, now, d > 0, distance);
        }
    }

    /// Of vectors that are read where they are.
    __device__ __forceinline__ void score(
            const TilePlace& place,
            uint32_t begin,
            uint32_t count,
            IvfCandidate candidate) const {
        const IvfParams& search = params.search;
        for (uint32_t first = 0; first < count; first += kAtATime) {
            const int d = dimsOf(first, count);
            const IvfCandidate now = candidate;
            if (first + kAtATime < count) {
                candidate = candidateOf(first + kAtATime, begin, count);
            }
            double distance = 0;
            VectorsOfLists<kCoding>::with(search, [&](const auto& lists) {
                distance = pairDistance<kMetric>(
                        lists.vector(place, now.rowAndPlace % kListGroup),
                        queryOf(search, now),
                        d,
                        search.power);
            });
            setDistance(params, now, d > 0, distance);
        }
    }
};

} // namespace faiss_bits
