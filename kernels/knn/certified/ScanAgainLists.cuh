/// What ScanAgain does with the lists of its slots. Included by ScanAgain.cuh.
#pragma once

#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Whether entries of a list were dropped.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::isOverfull(
        uint32_t used) const {
    bool found = false;
    for (uint32_t s = threadIdx.x; s < used; s += kThreads) {
        found |= __ldcg(params.counts + s) > params.capacity;
    }
    return __syncthreads_or(found);
}

/// Counts as they were before a step, from the blocks that set them.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::forgetStep(
        uint32_t used) {
    const uint32_t first = blockIdx.x + threadIdx.x * gridDim.x;
    for (uint32_t s = first; s < used; s += kThreads * gridDim.x) {
        params.counts[s] = shared.counts[s];
    }
}

/// Entries of a list that need not be cut: some more than k are sorted with
/// them in the end, `sortable` at most.
template <Metric kMetric, class Begin>
__device__ __forceinline__ uint32_t
ScanAgain<kMetric, Begin>::uncutEntries(uint32_t sortable, bool isLast) const {
    const uint32_t k = params.keep;
    return isLast ? max(k, min(2 * k + 256, sortable)) : k;
}

/// Entries that a cut leaves at most: to leave k takes more passes over the
/// list. Of a small k even some more let many times as many pass. Lists that
/// shared memory has no room for are of k in the end.
template <Metric kMetric, class Begin>
__device__ __forceinline__ uint32_t
ScanAgain<kMetric, Begin>::mostKept() const {
    const uint32_t k = params.keep;
    const uint32_t more =
            min(k / 8, uint32_t(params.capacity - params.keep) / 8);
    return max(k, min(k + more, uint32_t(kSharedSort)));
}

/// Leaves the k nearest entries of the lists of this block and up to some more,
/// and the limits that they set.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::keepNearest(
        uint32_t used,
        bool isLast) {
    // A warp takes as long as some lists take a block, one after the other.
    constexpr uint32_t kManyLists = 4;
    uint32_t done = 0; // lists of so many entries are
    bool areLeft = true;
    if (used > gridDim.x) {
        done = used > kManyLists * gridDim.x ? kWarpList : kShortList;
        areLeft = keepByWarps(used, done, isLast);
    }
    if (areLeft) {
        for (uint32_t s = blockIdx.x; s < used; s += gridDim.x) {
            keepByBlock(s, done, isLast);
        }
    }
}

/// keepNearest() of lists of up to `longest` entries, a warp a list: several
/// wait for memory together. Returns whether there are longer ones.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::keepByWarps(
        uint32_t used,
        uint32_t longest,
        bool isLast) {
    constexpr uint32_t kWarps = kThreads / kWarpSize;
    constexpr int kAhead = 16; // loads in flight
    const uint32_t warp = threadIdx.x / kWarpSize;
    const uint32_t lane = threadIdx.x % kWarpSize;
    const WarpNarrow narrow{shared.narrowOfWarps[warp]};
    bool isLong = false;
    __syncthreads();
    for (uint32_t s = blockIdx.x + warp * gridDim.x; s < used;
         s += kWarps * gridDim.x) {
        const uint32_t count = __ldcg(params.counts + s);
        isLong |= count > longest;
        if (count > longest) {
            continue;
        }
        if (count <= uncutEntries(kShortList, isLast)) {
            if (lane == 0) {
                shared.counts[s] = count;
            }
            continue;
        }
        unsigned long long* list = reinterpret_cast<unsigned long long*>(
                params.lists + s * params.capacity);
        uint64_t some[kAhead];
        const auto read = [&](uint32_t base) {
#pragma unroll
            for (int j = 0; j < kAhead; ++j) {
                const uint32_t at = base + j * kWarpSize + lane;
                some[j] = at < count ? __ldcg(list + at) : kNoEntry;
            }
        };
        const auto forEach = [&](auto take) {
#pragma unroll 1
            for (uint32_t base = 0; base < count; base += kAhead * kWarpSize) {
                read(base);
#pragma unroll
                for (int j = 0; j < kAhead; ++j) {
                    if (some[j] != kNoEntry) {
                        take(some[j]);
                    }
                }
            }
        };
        const uint64_t limit = narrow.limit(forEach, params.keep, mostKept());
        uint32_t kept = 0;
#pragma unroll 1
        for (uint32_t base = 0; base < count; base += kAhead * kWarpSize) {
            read(base);
            __syncwarp(); // places before those still to be read are free
#pragma unroll
            for (int j = 0; j < kAhead; ++j) {
                const bool is = some[j] <= limit && some[j] != kNoEntry;
                const uint32_t mask = __ballot_sync(kFullWarp, is);
                if (is) {
                    list[kept + __popc(mask & ((1u << lane) - 1))] = some[j];
                }
                kept += __popc(mask);
            }
        }
        if (lane == 0) {
            params.counts[s] = shared.counts[s] = kept;
            params.limits[s] = limit;
        }
        __syncwarp();
    }
    return __syncthreads_or(isLong);
}

/// The same of a list of more than `done` entries.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::keepByBlock(
        uint32_t slot,
        uint32_t done,
        bool isLast) {
    __syncthreads();
    const uint32_t k = params.keep;
    const uint32_t count = __ldcg(params.counts + slot);
    if (done > 0 && count <= done) {
        return;
    }
    if (count <= uncutEntries(kSharedSort, isLast)) {
        if (threadIdx.x == 0) {
            shared.counts[slot] = count;
        }
        return;
    }
    unsigned long long* list = reinterpret_cast<unsigned long long*>(
            params.lists + slot * params.capacity);
    const auto forEach = [&](auto take) {
        // Several loads in flight.
        constexpr int kChunk = 8;
        for (uint32_t i = threadIdx.x; i < count; i += kChunk * kThreads) {
            uint64_t chunk[kChunk];
#pragma unroll
            for (int j = 0; j < kChunk; ++j) {
                const uint32_t at = i + j * kThreads;
                chunk[j] = at < count ? __ldcg(list + at) : kNoEntry;
            }
#pragma unroll
            for (int j = 0; j < kChunk; ++j) {
                if (chunk[j] != kNoEntry) {
                    take(chunk[j]);
                }
            }
        }
    };
    const uint64_t limit = Narrow{shared.narrow}.limit(forEach, k, mostKept());
    if (threadIdx.x == 0) {
        shared.kept = 0;
    }
    __syncthreads();
    // Places before those that are still to be read are free.
    constexpr int kChunk = 8;
    for (uint32_t base = 0; base < count; base += kChunk * kThreads) {
        uint64_t chunk[kChunk];
#pragma unroll
        for (int j = 0; j < kChunk; ++j) {
            const uint32_t at = base + j * kThreads + threadIdx.x;
            chunk[j] = at < count ? __ldcg(list + at) : kNoEntry;
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < kChunk; ++j) {
            if (chunk[j] <= limit && chunk[j] != kNoEntry) {
                list[atomicAdd(&shared.kept, 1u)] = chunk[j];
            }
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        params.counts[slot] = shared.counts[slot] = shared.kept;
        // k entries are below what is appended from now on.
        params.limits[slot] = limit;
    }
}

/// Sorts the lists of this block that are short and writes the rows' results.
/// A warp a list where there are many: few comparisons lie between two meetings
/// of a block.
template <Metric kMetric, class Begin>
template <int kTeam>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::finishShort(
        uint32_t used) {
    constexpr uint32_t kTeams = kThreads / kTeam;
    static_assert(kTeams * kShortList <= uint32_t(kSharedSort));
    const uint32_t k = uint32_t(params.search.k);
    const uint32_t team = threadIdx.x / kTeam;
    const uint32_t member = threadIdx.x % kTeam;
    uint64_t* const entries = shared.lists.sort + team * kShortList;
    __syncthreads();
    for (uint32_t s = blockIdx.x + team * gridDim.x; s < used;
         s += kTeams * gridDim.x) {
        const uint32_t count = __ldcg(params.counts + s);
        if (count > kShortList) {
            continue;
        }
        const uint64_t* list = params.lists + s * params.capacity;
        for (uint32_t i = member; i < count; i += kTeam) {
            entries[i] = list[i];
        }
        sortAscending<kTeam>(entries, count);
        for (uint32_t i = member; i < k; i += kTeam) {
            writePlace<kMetric>(
                    params.search,
                    shared.rows[s],
                    int(i),
                    i < count ? entries[i] : kNoEntry);
        }
        syncTeam<kTeam>();
    }
}

/// Sorts a list that is not short and fits shared memory and writes the row's
/// result.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::finish(
        uint32_t slot) {
    const uint32_t row = shared.rows[slot];
    const uint64_t* list = params.lists + slot * params.capacity;
    const uint32_t count = __ldcg(params.counts + slot);
    if (count <= kShortList) {
        return;
    }
    __syncthreads();
    const uint32_t k = uint32_t(params.search.k);
    uint64_t* const entries = shared.lists.sort;
    for (uint32_t first = 0; first < count; first += Pieces::kPiece) {
        Pieces::sort(shared.lists.pieces, list, entries, first, count);
    }
    for (uint32_t i = threadIdx.x; i < max(count, k); i += kThreads) {
        writeEntry(row, entries, count, i);
    }
    __syncthreads();
}

/// The same of all lists by all blocks, with the grid in step between pieces
/// and places: they may be longer, and few.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::finishTogether(
        uint32_t used) {
    const auto forItems = [&](uint32_t ofList, auto visit) {
        for (uint64_t i = blockIdx.x; i < uint64_t(used) * ofList;
             i += gridDim.x) {
            const uint32_t s = uint32_t(i / ofList);
            visit(s, uint32_t(i % ofList), __ldcg(params.counts + s));
        }
    };
    forItems(
            (params.keep + Pieces::kPiece - 1) / Pieces::kPiece,
            [&](uint32_t s, uint32_t i, uint32_t count) {
                __syncthreads();
                uint64_t* list = params.lists + s * params.capacity;
                Pieces::sort(
                        shared.lists.pieces,
                        list,
                        list,
                        i * Pieces::kPiece,
                        count);
            });
    cooperative_groups::this_grid().sync();
    forItems(
            (uint32_t(params.search.k) + kThreads - 1) / kThreads,
            [&](uint32_t s, uint32_t i, uint32_t count) {
                writeEntry(
                        shared.rows[s],
                        params.lists + s * params.capacity,
                        count,
                        i * kThreads + threadIdx.x);
            });
}

/// Entry i of a list whose pieces are sorted to where it belongs, if that is in
/// the result; behind the last an empty place.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::writeEntry(
        uint32_t row,
        const uint64_t* entries,
        uint32_t count,
        uint32_t i) {
    const uint32_t place = i < count ? Pieces::placeOf(entries, count, i) : i;
    if (place < uint32_t(params.search.k)) {
        writePlace<kMetric>(
                params.search,
                row,
                int(place),
                i < count ? entries[i] : kNoEntry);
    }
}

} // namespace faiss_bits
