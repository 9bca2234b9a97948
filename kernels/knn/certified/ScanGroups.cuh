/// Equal vectors are met once: what ScanAgain does where few of the vectors
/// are distinct, so that thousands are as far from a query, whatever the
/// metric. Included by ScanAgain.cuh.
///
/// A table of hashes finds the sets of equal vectors in one read of all; two
/// are equal if all of their bits are, which is compared. A query meets one
/// vector of each set, the sizes of the sets say how far its k nearest reach,
/// and a scan of two bytes a vector finds them. The table gives up at once
/// where more vectors are distinct than it is for.
///
/// Bound by: the read of the vectors; then by a few instructions a pair.
#pragma once

#include "kernels/knn/certified/LongTerms.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Rows from which on a read of the vectors for their sets is less than what
/// it saves: one row of a short term is bound by that read.
template <Metric kMetric>
constexpr uint32_t kLeastGroupRows = kHasLongTerms<kMetric> ? 1 : 3;
/// The same of rows that have the nearest of some vectors: little is within
/// that limit, so that all vectors are met in one step or two, and four tiles
/// of rows take no longer than the table.
constexpr uint32_t kLeastLimitedRows = 256;

template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::wantsGroups(
        uint32_t used) const {
    const uint32_t least =
            params.haveResults ? kLeastLimitedRows : kLeastGroupRows<kMetric>;
    // A large k takes many steps without them.
    return params.groups.ofVectors &&
            (used >= least || params.keep > kSharedSort);
}

/// Of every slot and set.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::findGroupKeys(
        uint32_t used) {
    const VectorGroups& groups = params.groups;
    const CertifiedParams& search = params.search;
    constexpr uint32_t kGroups = kThreads / kPairLanes;
    const uint32_t pairs = used * numGroups;
    for (uint32_t base = blockIdx.x * kGroups; base < pairs;
         base += gridDim.x * kGroups) {
        const uint32_t pair = base + threadIdx.x / kPairLanes;
        const uint32_t one = min(pair, pairs - 1);
        const uint32_t slot = one / numGroups;
        const uint32_t place = __ldcg(groups.places + one % numGroups);
        const int64_t vector =
                int64_t(uint32_t(__ldcg(groups.table + place))) - 1;
        double distance = 0;
        withVectors(search.vectors, [&](const auto* data) {
            distance = distanceOfPair<kMetric>(
                    search,
                    data + vector * search.vectors.rowStride,
                    search.queries + int64_t(shared.rows[slot]) * search.d,
                    search.d);
        });
        if (pair < pairs && threadIdx.x % kPairLanes == 0) {
            // Of what is no number that of kNoEntry.
            groups.keys[pair] = entryKey(distanceEntry<kMetric>(distance, 0));
        }
    }
}

/// From the sizes of the sets: the k nearest of a slot are not above its limit,
/// or isAmiss() will find out.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::findGroupLimits(
        uint32_t used) {
    constexpr uint32_t kNone = ~0u;
    constexpr int kItems = kMostGroups / kThreads;
    const VectorGroups& groups = params.groups;
    // A warp a slot where sets are few, which then waits for no other.
    const bool byWarps = numGroups <= kItems * kWarpSize;
    const uint32_t team = byWarps ? kWarpSize : kThreads;
    const uint32_t teams = kThreads / team;
    const uint32_t member = threadIdx.x % team;
    for (uint32_t s = blockIdx.x + threadIdx.x / team * gridDim.x; s < used;
         s += teams * gridDim.x) {
        uint32_t keys[kItems];
        uint32_t sizes[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t g = i * team + member;
            keys[i] = kNone;
            sizes[i] = 0;
            if (g < numGroups) {
                keys[i] = __ldcg(groups.keys + s * numGroups + g);
                sizes[i] = __ldcg(groups.sizes + __ldcg(groups.places + g));
            }
        }
        int turn = 0;
        // Vectors with a key below it; all of the team get it.
        const auto countBelow = [&](uint32_t key) {
            uint32_t count = 0;
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                count += keys[i] < key ? sizes[i] : 0;
            }
            count = __reduce_add_sync(kFullWarp, count);
            if (byWarps) {
                return count;
            }
            uint32_t(&sums)[kThreads / kWarpSize] = shared.sums[turn];
            turn ^= 1;
            if (threadIdx.x % kWarpSize == 0) {
                sums[threadIdx.x / kWarpSize] = count;
            }
            __syncthreads();
            count = 0;
#pragma unroll
            for (int w = 0; w < kThreads / kWarpSize; ++w) {
                count += sums[w];
            }
            return count;
        };
        // The greatest that fewer than k are below: that of the k-th.
        uint32_t key = 0;
#pragma unroll 1
        for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
            key |= countBelow(key | bit) < params.keep ? bit : 0;
        }
        const uint32_t below = key == kNone ? 0 : countBelow(key);
        const uint32_t within = key == kNone ? 0 : countBelow(key + 1);
        if (member == 0) {
            // Of those that are as far as the k-th the lowest numbers belong to
            // the result: vectors up to here have enough of them, unless these
            // are stored together.
            const uint32_t wanted = params.keep - below;
            const uint32_t some = wanted + wanted / 4 + 64;
            const uint32_t ties = within - below;
            const uint32_t last = ties > some
                    ? uint32_t(double(params.search.n) * some / ties)
                    : kNone;
            params.limits[s] = key == kNone ? kNoEntry : makeEntry(key, last);
        }
        if (!byWarps) {
            __syncthreads();
        }
    }
}

/// After a scan with these limits: whether a list has too few entries, or more
/// than it has room for.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::isAmiss(
        uint32_t used) const {
    bool found = false;
    for (uint32_t s = threadIdx.x; s < used; s += kThreads) {
        const uint32_t count = __ldcg(params.counts + s);
        const bool isCut = entryColumn(shared.limits[s]) != ~0u;
        found |= count > params.capacity || (isCut && count < params.keep);
    }
    return __syncthreads_or(found);
}

/// Limits that do not rest on how sets are stored.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::forgetCuts(
        uint32_t used) {
    const uint32_t first = blockIdx.x + threadIdx.x * gridDim.x;
    for (uint32_t s = first; s < used; s += kThreads * gridDim.x) {
        params.limits[s] = shared.limits[s] | 0xFFFFFFFFu;
    }
}

/// Chunks `begin` to begin + count: blocks share the slots, or the chunks too.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::scanGroups(
        uint32_t begin,
        uint32_t count,
        uint32_t used) {
    constexpr int kTogether = 8; // vectors of a thread, 16 bytes
    constexpr uint32_t kUnits = kChunk / kTogether;
    static_assert(kChunk % kTogether == 0 && kChunk <= kLongestChunk);
    const VectorGroups& groups = params.groups;
    const uint32_t parts = min(max(gridDim.x / used, 1u), count);
    const uint32_t units = count * kUnits;
    for (uint32_t item = blockIdx.x; item < used * parts; item += gridDim.x) {
        const uint32_t s = item / parts;
        const uint32_t part = item % parts;
        __syncthreads();
        for (uint32_t g = threadIdx.x; g < numGroups; g += kThreads) {
            shared.ofGroups[__ldcg(groups.places + g)] =
                    __ldcg(groups.keys + s * numGroups + g);
        }
        __syncthreads();
        const uint64_t limit = shared.limits[s];
        for (uint32_t u = part * kThreads + threadIdx.x; u < units;
             u += parts * kThreads) {
            const int64_t first =
                    chunkAt(begin + u / kUnits) + u % kUnits * kTogether;
            const uint4 eight = __ldcg(
                    reinterpret_cast<const uint4*>(groups.ofVectors + first));
            const uint32_t words[] = {eight.x, eight.y, eight.z, eight.w};
            uint64_t entries[kTogether];
            uint32_t passed = 0;
#pragma unroll
            for (int i = 0; i < kTogether; ++i) {
                const uint32_t place = words[i / 2] >> (i % 2 * 16) & 0xFFFF;
                const uint32_t key =
                        place < kGroupSlots ? shared.ofGroups[place] : ~0u;
                entries[i] = makeEntry(key, uint32_t(first + i));
                // A key of ~0 is that of no number.
                passed |= key != ~0u && entries[i] < limit ? 1u << i : 0;
            }
            if (passed != 0) {
                uint32_t at = atomicAdd(params.counts + s, __popc(passed));
#pragma unroll
                for (int i = 0; i < kTogether; ++i) {
                    if (passed >> i & 1) {
                        if (at < params.capacity) {
                            params.lists[s * params.capacity + at] = entries[i];
                        }
                        ++at;
                    }
                }
            }
        }
    }
}

} // namespace faiss_bits
