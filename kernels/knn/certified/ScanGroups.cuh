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

#include "kernels/device/Hash.h"
#include "kernels/knn/certified/LongTerms.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Rows from which on a read of the vectors for their sets is less than what
/// it saves: one row of a short term is bound by that read.
template <Metric kMetric>
constexpr uint32_t kLeastGroupRows = kHasLongTerms<kMetric> ? 1 : 3;

/// Places of the table that are looked at for a vector, at most: a set of
/// vectors with one hash is not worth more.
constexpr int kMostProbes = 64;

__device__ __forceinline__ uint32_t bitsOfComponent(float x) {
    return __float_as_uint(x);
}
__device__ __forceinline__ uint32_t bitsOfComponent(__half x) {
    return __half_as_ushort(x);
}
__device__ __forceinline__ uint32_t bitsOfComponent(__nv_bfloat16 x) {
    return __bfloat16_as_ushort(x);
}

template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::wantsGroups(
        uint32_t used) const {
    // A large k takes many steps without them.
    return params.groups.ofVectors &&
            (used >= kLeastGroupRows<kMetric> || params.keep > kSharedSort);
}

/// Before makeGroups(), with the grid in step between them.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::clearGroups() {
    const VectorGroups& groups = params.groups;
    for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < kGroupSlots;
         i += gridDim.x * kThreads) {
        groups.table[i] = 0;
        groups.sizes[i] = 0;
        if (i == 0) {
            *groups.count = 0;
        }
    }
}

/// The set of every vector, or more sets than there is room for.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::makeGroups() {
    const VectorGroups& groups = params.groups;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < kGroupSlots; i += kThreads) {
        shared.ofGroups[i] = 0;
    }
    __syncthreads();
    // A warp ends by itself when others have found too many.
    for (uint32_t i = blockIdx.x; i < params.order.chunks; i += gridDim.x) {
        if (__any_sync(kFullWarp, __ldcg(groups.count) > groups.most)) {
            break;
        }
        const int64_t first = chunkAt(i);
        withVectors(params.search.vectors, [&](const auto* data) {
            groupChunk(data, first);
        });
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < kGroupSlots; i += kThreads) {
        if (shared.ofGroups[i] > 0) {
            atomicAdd(groups.sizes + i, shared.ofGroups[i]);
        }
    }
    __syncthreads();
}

/// The vectors of a chunk, eight lanes each.
template <Metric kMetric, class Begin>
template <class T>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::groupChunk(
        const T* data,
        int64_t first) {
    constexpr int kGroups = kThreads / kPairLanes;
    constexpr int kVectors = kChunk / kGroups; // of a group of lanes
    constexpr int kAhead = 4;                  // components of each
    const VectorGroups& groups = params.groups;
    const CertifiedParams& search = params.search;
    const int64_t columnStride = search.vectors.columnStride;
    const int lane = threadIdx.x % kPairLanes;
    const int64_t own = first + threadIdx.x / kPairLanes;
    const T* vectors[kVectors];
    uint32_t hashes[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
        vectors[v] = data +
                min(own + v * kGroups, search.n - 1) * search.vectors.rowStride;
        hashes[v] = lane;
    }
    for (int begin = lane; begin < search.d; begin += kPairLanes * kAhead) {
        uint32_t bits[kAhead][kVectors];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int c = begin + i * kPairLanes;
#pragma unroll
            for (int v = 0; v < kVectors; ++v) {
                bits[i][v] = c < search.d
                        ? bitsOfComponent(vectors[v][c * columnStride])
                        : 0u;
            }
        }
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
#pragma unroll
            for (int v = 0; v < kVectors; ++v) {
                const uint32_t mixed = (hashes[v] ^ bits[i][v]) * 0x9E3779B1u;
                hashes[v] = mixed ^ mixed >> 15;
            }
        }
    }
    // Mostly its set is known, and found at once: lane v looks for vector v.
    static_assert(kVectors <= kPairLanes);
    uint64_t found = 0; // entry of the table
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
        uint32_t hash = mixBits(hashes[v] + lane);
#pragma unroll
        for (int distance = kPairLanes / 2; distance >= 1; distance /= 2) {
            hash += __shfl_xor_sync(kFullWarp, hash, distance);
        }
        hashes[v] = hash;
    }
    const int64_t mine = own + lane * kGroups;
    const bool isMine =
            lane < kVectors && mine < search.n && isAllowed(mine);
    const uint32_t myHash = elementOf(hashes, min(lane, kVectors - 1));
    const uint32_t myPlace = mixBits(myHash) % kGroupSlots;
    if (isMine) {
        found = __ldcg(groups.table + myPlace);
    }
    bool differs[kVectors];
    const T* others[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
        const uint64_t entry = __shfl_sync(kFullWarp, found, v, kPairLanes);
        differs[v] = entry == 0 || uint32_t(entry >> 32) != hashes[v];
        others[v] = data +
                (differs[v] ? 0 : int64_t(uint32_t(entry)) - 1) *
                        search.vectors.rowStride;
    }
    for (int c = lane; c < search.d; c += kPairLanes) {
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            differs[v] |= bitsOfComponent(vectors[v][c * columnStride]) !=
                    bitsOfComponent(others[v][c * columnStride]);
        }
    }
    uint32_t known = 0; // a bit for each of the vectors of the group
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
        const uint32_t ofGroup = __ballot_sync(kFullWarp, differs[v]) >>
                        (threadIdx.x % kWarpSize / kPairLanes * kPairLanes) &
                ((1u << kPairLanes) - 1);
        known |= ofGroup == 0 ? 1u << v : 0;
    }
    const bool isKnown = isMine && (known >> lane & 1) != 0;
    if (isKnown) {
        atomicAdd(shared.ofGroups + myPlace, 1u);
    }
    if (isKnown || (lane < kVectors && !isMine)) {
        groups.ofVectors[mine] = isKnown ? uint16_t(myPlace) : kNoGroup;
    }
    // The others one after the other: of those that are there.
    const uint32_t left = __ballot_sync(kFullWarp, isMine && !isKnown);
    if (left == 0) {
        return;
    }
#pragma unroll 1
    for (int v = 0; v < kVectors; ++v) {
        if ((left >> v & 0x01010101u) == 0) {
            continue;
        }
        if (__any_sync(kFullWarp, __ldcg(groups.count) > groups.most)) {
            return;
        }
        const uint32_t hash = elementOf(hashes, v);
        const int64_t vector = own + v * kGroups;
        const bool isThere = vector < search.n && isAllowed(vector) &&
                (left >> (threadIdx.x % kWarpSize / kPairLanes * kPairLanes + v) &
                 1) != 0;
        const T* x =
                data + min(vector, search.n - 1) * search.vectors.rowStride;
        uint32_t place = mixBits(hash) % kGroupSlots;
        bool isFound = !isThere;
        for (int probe = 0; __any_sync(kFullWarp, !isFound); ++probe) {
            unsigned long long entry = 0;
            if (lane == 0 && !isFound) {
                entry = __ldcg(groups.table + place);
                if (entry == 0) {
                    const unsigned long long mine =
                            uint64_t(hash) << 32 | uint32_t(vector + 1);
                    entry = atomicCAS(groups.table + place, 0ull, mine);
                    if (entry == 0) {
                        entry = mine;
                        const uint32_t number = atomicAdd(groups.count, 1u);
                        if (number < groups.most) {
                            groups.places[number] = uint16_t(place);
                        }
                    }
                }
            }
            entry = __shfl_sync(kFullWarp, entry, 0, kPairLanes);
            const int64_t other = int64_t(uint32_t(entry)) - 1;
            const bool mayBe = !isFound && uint32_t(entry >> 32) == hash;
            bool differs = false;
            if (mayBe && other != vector) {
                const T* y = data + other * search.vectors.rowStride;
                for (int c = lane; c < search.d; c += kPairLanes) {
                    differs |= bitsOfComponent(x[c * columnStride]) !=
                            bitsOfComponent(y[c * columnStride]);
                }
            }
            const uint32_t ofWarp = __ballot_sync(kFullWarp, differs);
            const uint32_t ofGroup = ofWarp >> (threadIdx.x % kWarpSize /
                                                kPairLanes * kPairLanes) &
                    ((1u << kPairLanes) - 1);
            if (mayBe && ofGroup == 0) {
                isFound = true;
                if (lane == 0) {
                    atomicAdd(shared.ofGroups + place, 1u);
                }
            } else if (!isFound) {
                place = (place + 1) % kGroupSlots;
                if (probe == kMostProbes) {
                    isFound = true; // they are too many
                    if (lane == 0) {
                        atomicAdd(groups.count, groups.most + 1);
                    }
                }
            }
        }
        if (lane == 0 && isThere) {
            groups.ofVectors[vector] = uint16_t(place);
        }
    }
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
    for (uint32_t s = blockIdx.x; s < used; s += gridDim.x) {
        uint32_t keys[kItems];
        uint32_t sizes[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t g = i * kThreads + threadIdx.x;
            keys[i] = kNone;
            sizes[i] = 0;
            if (g < numGroups) {
                keys[i] = __ldcg(groups.keys + s * numGroups + g);
                sizes[i] = __ldcg(groups.sizes + __ldcg(groups.places + g));
            }
        }
        int turn = 0;
        // Vectors with a key below it; all threads get it.
        const auto countBelow = [&](uint32_t key) {
            uint32_t count = 0;
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                count += keys[i] < key ? sizes[i] : 0;
            }
            count = __reduce_add_sync(kFullWarp, count);
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
        if (threadIdx.x == 0) {
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
        __syncthreads();
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
