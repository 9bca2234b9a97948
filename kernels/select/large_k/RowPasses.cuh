/// The passes of Sample Select and Radix Select: count the buckets, find the
/// one that holds the k-th entry, keep its entries, again; when few are left,
/// one block finds the k-th of them (Hanak 2023, 3.7 and 4.3).
///
/// Bound by: reading the keys, twice (one stage) or three times (two stages),
/// and by the search among splitters.
/// Differs from the thesis: a row has as many blocks as it takes to fill the
/// device, each with a histogram of its own; entries are (key, column), so the
/// k-th one is a single entry and ties cost nothing; candidates that would not
/// fit the bounded buffer stay where they are and are read again.
#pragma once

#include <cuda/atomic>

#include "kernels/select/large_k/Buckets.cuh"
#include "kernels/select/large_k/Composite.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// Sends an entry of the result to the caller, or to the sort.
template <class T>
__device__ __forceinline__ void putResult(
        const MultiPassParams& p,
        uint32_t row,
        uint32_t place,
        uint64_t entry) {
    if (p.outEntries) {
        p.outEntries[uint64_t(row) * p.wanted + place] =
                sortedAs(p.layout, row, entry);
    } else {
        writeResult<T>(p.select, p.select.firstRow + row, int(place), entry);
    }
}

__device__ __forceinline__ bool isFewLeft(const RowState& state) {
    return state.count <= kMultiPassBase;
}

/// One block a row.
template <class Keys>
__global__ void __launch_bounds__(kMultiPassThreads)
        drawSplittersKernel(const __grid_constant__ MultiPassParams p) {
    __shared__ SplitterSample::SharedStorage shared;
    const uint32_t row = blockIdx.x;
    const RowState state = p.states[p.pass & 1][row];
    if (isFewLeft(state)) {
        return;
    }
    const uint64_t number = (uint64_t(p.select.firstRow) + row) * 16 + p.pass;
    withSource<Keys>(p, row, state, [&](const auto& source) {
        SplitterSample::draw(
                shared,
                source,
                state,
                p.seed,
                number * kMultiPassThreads + threadIdx.x,
                p.splitters + uint64_t(row) * kSampleBuckets);
    });
}

/// rows * splits blocks: how many candidates of each part of the row fall into
/// each bucket or a lower one.
template <class Keys, class Buckets>
__global__ void __launch_bounds__(kMultiPassThreads, 4)
        countKernel(const __grid_constant__ MultiPassParams p) {
    constexpr int kEach = Buckets::kBuckets / kMultiPassThreads;
    using Scan = cub::BlockScan<uint32_t, kMultiPassThreads>;
    __shared__ typename Buckets::SharedStorage bucketStorage;
    __shared__ uint32_t histogram[Buckets::kBuckets];
    __shared__ typename Scan::TempStorage scanStorage;

    const uint32_t row = blockIdx.x / p.splits;
    const uint32_t split = blockIdx.x % p.splits;
    const RowState state = p.states[p.pass & 1][row];
    const SplitRange part(state.sourceCount, p.splits, split);
    if (isFewLeft(state) || part.begin == part.end) {
        return;
    }
    const Buckets buckets(bucketStorage, p, row, state);
    for (int b = threadIdx.x; b < Buckets::kBuckets; b += kMultiPassThreads) {
        histogram[b] = 0;
    }
    __syncthreads();
    const InRange range{state.lo, state.hi};
    withSource<Keys>(p, row, state, [&](const auto& source) {
        forEachTile(source, part.begin, part.end, [&](const auto& tile) {
#pragma unroll
            for (int i = 0; i < tile.kItems; ++i) {
                const uint64_t entry = tile.entry(i);
                addToHistogram(
                        histogram, range(entry), buckets.bucketOf(entry));
            }
        });
    });
    __syncthreads();
    uint32_t counts[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
        counts[i] = histogram[threadIdx.x * kEach + i];
    }
    Scan(scanStorage).InclusiveSum(counts, counts);
    uint32_t* prefixes = p.prefixes + uint64_t(blockIdx.x) * Buckets::kBuckets;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
        prefixes[threadIdx.x * kEach + i] = counts[i];
    }
}

/// rows * splits blocks: writes the candidates of the bucket to the next
/// buffer, if they are to move, and in one stage those below it to the result.
template <class Keys>
__global__ void __launch_bounds__(kMultiPassThreads, 3)
        partitionKernel(const __grid_constant__ MultiPassParams p) {
    __shared__ OrderedPlaces::SharedStorage scanStorage;
    const uint32_t row = blockIdx.x / p.splits;
    const uint32_t split = blockIdx.x % p.splits;
    const RowState state = p.states[p.pass & 1][row];
    const RowState next = p.states[(p.pass + 1) & 1][row];
    const SplitRange part(state.sourceCount, p.splits, split);
    const bool takes = p.oneStage && next.taken != state.taken;
    const bool moves = next.source != state.source;
    if (isFewLeft(state) || part.begin == part.end || (!takes && !moves)) {
        return;
    }
    uint32_t lessAt = p.lessOffsets[blockIdx.x];
    uint32_t sameAt = p.sameOffsets[blockIdx.x];
    const int buffer = next.source == CandidateSource::BufferA ? 0 : 1;
    uint64_t* moved = p.buffers[buffer] + uint64_t(row) * p.capacities[buffer];
    const InRange less{state.lo, next.lo - 1};
    const InRange same{next.lo, next.hi};
    withSource<Keys>(p, row, state, [&](const auto& source) {
        forEachTile(source, part.begin, part.end, [&](const auto& tile) {
            if (takes && next.lo > state.lo) {
                const OrderedPlaces places(scanStorage, tile, less);
                places.forEach(
                        tile, lessAt, less, [&](uint32_t place, uint64_t e) {
                            putResult<typename Keys::Type>(p, row, place, e);
                        });
                lessAt += places.total();
                __syncthreads();
            }
            if (moves) {
                const OrderedPlaces places(scanStorage, tile, same);
                places.forEach(
                        tile, sameAt, same, [&](uint32_t place, uint64_t e) {
                            moved[place] = e;
                        });
                sameAt += places.total();
                __syncthreads();
            }
        });
    });
}

/// One block a row: the k-th entry among the last candidates. One stage: the
/// rest of the result is written; two stages: the limit for the matches. The
/// calls spill 16 bytes, once a row.
template <class Keys>
__global__ void __launch_bounds__(kMultiPassThreads)
        finishKernel(const __grid_constant__ MultiPassParams p) {
    __shared__ union {
        BlockKth::SharedStorage kth;
        OrderedPlaces::SharedStorage places;
    } shared;
    const uint32_t row = blockIdx.x;
    const RowState state = p.states[p.pass & 1][row];
    withSource<Keys>(p, row, state, [&](const auto& source) {
        const uint64_t kth = BlockKth::find(
                shared.kth,
                source,
                0,
                state.sourceCount,
                {state.lo, state.hi},
                state.count,
                state.wanted,
                p.select.cols - 1);
        if (!p.oneStage) {
            if (threadIdx.x == 0) {
                p.limits[row] = kth;
            }
            return;
        }
        gatherInOrder(
                shared.places,
                source,
                0,
                state.sourceCount,
                {state.lo, kth},
                state.taken,
                [&](uint32_t place, uint64_t entry) {
                    putResult<typename Keys::Type>(p, row, place, entry);
                });
    });
}

/// What a tile of matches tells those behind it: the matches of the tile
/// alone, or of all tiles of the row up to it. Zero: nothing yet.
class TileStates {
   public:
    __device__ explicit TileStates(uint64_t* states) : states_(states) {}

    /// Matches before `tile`, given those in it; by the first warp. Tiles are
    /// taken by ticket, so the blocks of all lower ones are running.
    __device__ uint32_t before(uint32_t tile, uint32_t matches) {
        const int lane = threadIdx.x;
        if (tile == 0) {
            if (lane == 0) {
                put(tile, kUpTo | matches);
            }
            return 0;
        }
        if (lane == 0) {
            put(tile, kAlone | matches);
        }
        uint32_t sum = 0;
        for (int64_t last = int64_t(tile) - 1;; last -= kWarpSize) {
            const int64_t mine = last - lane;
            uint64_t state = mine < 0 ? kUpTo : get(mine);
            while (__any_sync(kFullWarp, state == 0)) {
                state = state == 0 ? get(mine) : state;
            }
            // Lane 0 is nearest. Sum up to the first that knows all before it.
            const unsigned known = __ballot_sync(kFullWarp, state >= kUpTo);
            const int used = known ? __ffs(known) - 1 : kWarpSize - 1;
            sum += __reduce_add_sync(
                    kFullWarp, lane <= used ? uint32_t(state) : 0u);
            if (known) {
                break;
            }
        }
        if (lane == 0) {
            put(tile, kUpTo | (sum + matches));
        }
        return sum;
    }

   private:
    static constexpr uint64_t kAlone = uint64_t(1) << 32;
    static constexpr uint64_t kUpTo = uint64_t(2) << 32;
    using Ref = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;

    // State and count are one word: no other memory has to be in order.
    __device__ void put(int64_t tile, uint64_t state) {
        Ref(states_[tile]).store(state, cuda::memory_order_relaxed);
    }

    __device__ uint64_t get(int64_t tile) {
        return Ref(states_[tile]).load(cuda::memory_order_relaxed);
    }

    uint64_t* states_;
};

/// rows * tiles blocks, the second stage: the entries up to the k-th, in the
/// order of columns.
template <class Keys>
__global__ void __launch_bounds__(kMultiPassThreads)
        matchKernel(const __grid_constant__ MultiPassParams p) {
    __shared__ OrderedPlaces::SharedStorage scanStorage;
    __shared__ uint32_t ticket;
    __shared__ uint32_t first;
    if (threadIdx.x == 0) {
        ticket = atomicAdd(p.ticket, 1u);
    }
    __syncthreads();
    const uint32_t row = ticket / p.tiles;
    const uint32_t number = ticket % p.tiles;
    const InRange range{0, p.limits[row]};

    const Keys keys(p.select, p.select.firstRow + row);
    typename Keys::Tile tile;
    tile.load(keys, number * Keys::Tile::kSize, p.select.cols);
    const OrderedPlaces places(scanStorage, tile, range);
    if (threadIdx.x < kWarpSize) {
        TileStates states(p.tileStates + uint64_t(row) * p.tiles);
        const uint32_t before = states.before(number, places.total());
        if (threadIdx.x == 0) {
            first = before;
        }
    }
    __syncthreads();
    places.forEach(tile, first, range, [&](uint32_t place, uint64_t entry) {
        putResult<typename Keys::Type>(p, row, place, entry);
    });
}

/// rows * splits blocks: every entry of the row, for the sort.
template <class Keys>
__global__ void __launch_bounds__(kMultiPassThreads)
        listAllKernel(const __grid_constant__ MultiPassParams p) {
    const uint32_t row = blockIdx.x / p.splits;
    const SplitRange part(p.select.cols, p.splits, blockIdx.x % p.splits);
    const Keys keys(p.select, p.select.firstRow + row);
    uint64_t* out = p.outEntries + uint64_t(row) * p.select.cols;
    // Neighbouring lanes write neighbouring entries: those are most of the
    // bytes.
    constexpr int kAhead = 8;
    for (uint32_t at = part.begin + threadIdx.x; at < part.end;
         at += kAhead * kMultiPassThreads) {
        uint64_t entries[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const uint32_t c = at + i * kMultiPassThreads;
            entries[i] = c < part.end ? keys.entryAt(c) : kNoEntry;
        }
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const uint32_t c = at + i * kMultiPassThreads;
            if (c < part.end) {
                out[c] = sortedAs(p.layout, row, entries[i]);
            }
        }
    }
}

} // namespace faiss_bits
