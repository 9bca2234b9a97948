/// The sets of equal vectors, by a table of hashes in one read of all of them.
/// Included by ScanAgain.cuh; what they are for: ScanGroups.cuh.
#pragma once

#include "kernels/device/Hash.h"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

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

/// values[i] of an array in registers.
template <class T, int kCount>
__device__ __forceinline__ T elementOf(const T (&values)[kCount], int i) {
    T value = values[0];
#pragma unroll
    for (int j = 1; j < kCount; ++j) {
        value = i == j ? values[j] : value;
    }
    return value;
}

/// Whether a sample has as many equal vectors, by some of their components, as
/// the table may hold: half and more of what so many sets of one size would
/// show. Every block asks by itself, so that a table that would be given up
/// costs no step of the grid. So all must say the same, whatever the order of
/// their threads: blocks that do not would wait for one another for ever. Where
/// several sets want one place of the block's table, that of the first vector
/// of the sample has it, not that of the first thread to come.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::mayBeEqual() {
    constexpr uint32_t kSample = 512;
    constexpr uint32_t kPlaces = 2048;
    constexpr uint32_t kGroups = kThreads / kPairLanes;
    constexpr int kRounds = int(kSample / kGroups);
    // An entry of the table: the number in the sample, then bits of the hash.
    constexpr uint32_t kNone = ~0u;
    constexpr int kHashBits = 23;
    constexpr uint32_t kHash = (1u << kHashBits) - 1;
    static_assert(kPlaces <= kGroupSlots && kSample % kGroups == 0);
    static_assert(kSample <= 1u << (32 - kHashBits));
    const CertifiedParams& search = params.search;
    const uint32_t sampled = uint32_t(min(int64_t(kSample), search.n));
    const double step = double(search.n) / sampled;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < kPlaces; i += kThreads) {
        shared.ofGroups[i] = kNone;
    }
    if (threadIdx.x == 0) {
        shared.kept = 0;
    }
    // In the middle, as the first and the last are often equal by themselves.
    const int lane = threadIdx.x % kPairLanes;
    const int c =
            min(max(search.d / 2 - kPairLanes / 2, 0) + lane, search.d - 1);
    uint32_t hashes[kRounds];
    withVectors(search.vectors, [&](const auto* data) {
        const auto* column = data + c * search.vectors.columnStride;
#pragma unroll
        for (int i = 0; i < kRounds; ++i) {
            const uint32_t s = i * kGroups + threadIdx.x / kPairLanes;
            const int64_t vector = min(int64_t(s * step), search.n - 1);
            hashes[i] =
                    bitsOfComponent(column[vector * search.vectors.rowStride]);
        }
    });
    // visit(place, entry) of the vectors of the sample that this lane has.
    const auto forEntries = [&](auto visit) {
#pragma unroll
        for (int i = 0; i < kRounds; ++i) {
            const uint32_t s = i * kGroups + threadIdx.x / kPairLanes;
            if (lane == 0 && s < sampled) {
                visit(shared.ofGroups[mixBits(hashes[i]) % kPlaces],
                      s << kHashBits | (hashes[i] & kHash));
            }
        }
    };
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
        hashes[i] = mixBits(hashes[i] ^ lane * 0x9E3779B1u);
#pragma unroll
        for (int distance = kPairLanes / 2; distance >= 1; distance /= 2) {
            hashes[i] += __shfl_xor_sync(kFullWarp, hashes[i], distance);
        }
    }
    forEntries(
            [](uint32_t& place, uint32_t entry) { atomicMin(&place, entry); });
    __syncthreads();
    uint32_t found = 0; // that are equal to an earlier one
    forEntries([&](uint32_t place, uint32_t entry) {
        found += place != entry && ((place ^ entry) & kHash) == 0;
    });
    if (found > 0) {
        atomicAdd(&shared.kept, found);
    }
    __syncthreads();
    const uint32_t all = shared.kept;
    __syncthreads();
    return all >=
            min(sampled * sampled / (8 * params.groups.most), sampled / 8);
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
    const bool isMine = lane < kVectors && mine < search.n && isAllowed(mine);
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
                (left >> (threadIdx.x % kWarpSize / kPairLanes * kPairLanes +
                          v) &
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

} // namespace faiss_bits
