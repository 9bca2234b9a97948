/// A limit that cannot mislead: digit by digit of the entries, as Radix Select
/// finds it (Hanak 2023, 3.7.2), each digit by one reading of the row, or of
/// what is left of it. The blocks of a cluster may share it.
#pragma once

#include <cooperative_groups.h>
#include <bit>

#include "kernels/device/BlockScan.cuh"
#include "kernels/device/KeyTile.cuh"

namespace faiss_bits {

/// One block reads the row.
struct RowAlone {
    static constexpr uint32_t rank = 0;
    static constexpr uint32_t blocks = 1;

    __device__ __forceinline__ void inStep() const {
        __syncthreads();
    }
    /// Leaves in each block the sums of what all counted.
    __device__ __forceinline__ void sumBins(uint32_t*, int) const {
        __syncthreads();
    }
};

/// The blocks of a cluster do. Of a device without clusters it is the first of
/// them alone.
template <int Threads>
struct RowOfCluster {
    uint32_t* sums; // shared memory, as many as bins
    uint32_t rank;
    uint32_t blocks; // a power of two

#if __CUDA_ARCH__ >= 900
    __device__ explicit RowOfCluster(uint32_t* room, uint32_t)
            : sums(room),
              rank(cooperative_groups::this_cluster().block_rank()),
              blocks(cooperative_groups::this_cluster().num_blocks()) {}

    __device__ __forceinline__ void inStep() const {
        cooperative_groups::this_cluster().sync();
    }

    /// Each block sums a part of the bins, and takes those of the others.
    __device__ __forceinline__ void sumBins(uint32_t* bins, int numBins) const {
        const auto cluster = cooperative_groups::this_cluster();
        cluster.sync();
        const uint32_t part = numBins / blocks;
        for (uint32_t b = threadIdx.x; b < part; b += Threads) {
            uint32_t sum = 0;
#pragma unroll 8
            for (uint32_t r = 0; r < blocks; ++r) {
                sum += cluster.map_shared_rank(bins, r)[rank * part + b];
            }
            sums[b] = sum;
        }
        cluster.sync();
#pragma unroll 4
        for (uint32_t b = threadIdx.x; b < numBins; b += Threads) {
            bins[b] = cluster.map_shared_rank(sums, b / part)[b % part];
        }
        __syncthreads();
    }
#else
    __device__ explicit RowOfCluster(uint32_t* room, uint32_t launched)
            : sums(room), rank(blockIdx.x % launched), blocks(1) {}

    __device__ __forceinline__ void inStep() const {
        __syncthreads();
    }
    __device__ __forceinline__ void sumBins(uint32_t*, int) const {
        __syncthreads();
    }
#endif
};

template <class Tile, int Threads>
struct ExactRow {
    static constexpr int kBinsOfThread = 4;
    static constexpr int kBins = Threads * kBinsOfThread;
    static constexpr int kDigit = std::bit_width(unsigned(kBins)) - 1; // bits
    static_assert(kBins == 1 << kDigit);

    struct SharedStorage {
        uint32_t bins[kBins];
        uint32_t ofWarps[Threads / kWarpSize];
        uint32_t bin;
        uint32_t below;
        uint32_t inBin;
    };

    SharedStorage& shared;

    /// An entry that at least `wanted` and at most `room` of the row's entries
    /// are not above. This block reads the columns from `begin` to `end`.
    /// Begins and ends with the block in step.
    template <class Team>
    __device__ __forceinline__ uint64_t
    limit(const KeySource& params,
          uint32_t row,
          uint32_t begin,
          uint32_t end,
          uint32_t wanted,
          uint32_t room,
          const Team& team) {
        const auto forEach = [&](auto take) {
            Tile tile(params, row);
            constexpr uint32_t kTile = Threads * Tile::kItems;
            for (uint32_t at = begin; at < end; at += kTile) {
                tile.load(at, end);
#pragma unroll
                for (int i = 0; i < Tile::kItems; ++i) {
                    take(orderedKey(tile.clamp(tile.values[i])),
                         tile.column(i),
                         (tile.valid >> i & 1) != 0);
                }
            }
        };
        return limitOf(params.cols, wanted, room, team, forEach);
    }

    /// The same of entries, of which this block has `count`.
    template <class Team>
    __device__ __forceinline__ uint64_t limitOfEntries(
            const uint64_t* entries,
            uint32_t count,
            uint32_t cols,
            uint32_t wanted,
            uint32_t room,
            const Team& team) {
        const auto forEach = [&](auto take) {
            for (uint32_t i = threadIdx.x; i < count; i += Threads) {
                take(entryKey(entries[i]), entryColumn(entries[i]), true);
            }
        };
        return limitOf(cols, wanted, room, team, forEach);
    }

   private:
    /// forEach(take) calls take(key, column, isThere).
    template <class Team, class ForEach>
    __device__ __forceinline__ uint64_t
    limitOf(uint32_t cols,
            uint32_t wanted,
            uint32_t room,
            const Team& team,
            const ForEach& forEach) {
        // Entries without the bits that no column has.
        const int columnBits = 32 - __clz((cols - 1) | 1);
        uint64_t first = 0; // of those that are still in question
        uint32_t below = 0; // entries before it
        int shift = 32 + columnBits;
        while (true) {
            shift = max(shift - kDigit, 0);
            count(columnBits, first, shift, forEach);
            team.sumBins(shared.bins, kBins);
            find(wanted - below);
            first |= uint64_t(shared.bin) << shift;
            below += shared.below;
            const uint32_t upTo = below + shared.inBin;
            __syncthreads();
            if (upTo <= room || shift == 0) {
                break;
            }
        }
        const uint64_t last = first | ((uint64_t(1) << shift) - 1);
        const uint32_t column =
                uint32_t(last & ((uint64_t(1) << columnBits) - 1));
        const uint32_t key = uint32_t(last >> columnBits);
        // No key lies there, and its float would be -0, which zeros are not
        // above.
        return key == kZeroKey - 1 ? makeEntry(key - 1, ~0u)
                                   : makeEntry(key, column);
    }

    template <class ForEach>
    __device__ __forceinline__ void count(
            int columnBits,
            uint64_t first,
            int shift,
            const ForEach& forEach) {
        for (int b = threadIdx.x; b < kBins; b += Threads) {
            shared.bins[b] = 0;
        }
        __syncthreads();
        const int keyShift = shift - columnBits;
        if (keyShift >= 0) {
            // The digit is one of the key: half of the instructions.
            const uint32_t firstKey = uint32_t(first >> columnBits);
            forEach([&](uint32_t key, uint32_t, bool isThere) {
                countDigit((key ^ firstKey) >> keyShift, isThere);
            });
            return;
        }
        forEach([&](uint32_t key, uint32_t column, bool isThere) {
            const uint64_t entry = uint64_t(key) << columnBits | column;
            countDigit((entry ^ first) >> shift, isThere);
        });
    }

    /// kBins and more: the entry is not in question.
    template <class Digit>
    __device__ __forceinline__ void countDigit(Digit digit, bool isThere) {
        if (digit < kBins && isThere) {
            atomicAdd(&shared.bins[digit], 1u);
        }
    }

    /// The bin that holds the place'th entry, from 1.
    __device__ __forceinline__ void find(uint32_t place) {
        uint32_t bins[kBinsOfThread];
        uint32_t sum = 0;
#pragma unroll
        for (int b = 0; b < kBinsOfThread; ++b) {
            bins[b] = shared.bins[threadIdx.x * kBinsOfThread + b];
            sum += bins[b];
        }
        uint32_t below = sumOfThreadsBefore<Threads>(sum, shared.ofWarps);
        if (below < place && place <= below + sum) {
#pragma unroll
            for (int b = 0; b < kBinsOfThread; ++b) {
                if (below < place && place <= below + bins[b]) {
                    shared.bin = threadIdx.x * kBinsOfThread + b;
                    shared.below = below;
                    shared.inBin = bins[b];
                }
                below += bins[b];
            }
        }
        __syncthreads();
    }
};

} // namespace faiss_bits
