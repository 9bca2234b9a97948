/// Sorts a bucket of some thousand entries that lie together, as those of few
/// keys or of walks do. Bins of equal width (BucketSort.cuh) have most of them
/// in a few there; here they lie between entries that are drawn, so that each
/// has about as many, and what is between two of these is parted evenly.
#pragma once

#include "kernels/device/BlockScan.cuh"
#include "kernels/device/Entry.cuh"
#include "kernels/device/Hash.h"

namespace faiss_bits {

template <int Threads, int Items>
struct DrawnBinSort {
    static constexpr uint32_t kRoom = Threads * Items;
    static constexpr uint32_t kDrawn = 128;
    static constexpr uint32_t kParts = 32; // from one drawn entry to the next
    static constexpr uint32_t kBins = kDrawn * kParts;
    static constexpr uint32_t kBinsPerThread = kBins / Threads;
    static constexpr uint32_t kHelpers = Threads / kDrawn;
    static constexpr int kWarps = Threads / kWarpSize;
    static_assert(kBins % Threads == 0 && Threads % kDrawn == 0);

    /// With so many entries in one bin, the bucket is left to the merge.
    static constexpr uint32_t kMaxBin = 256;

    struct SharedStorage {
        union {
            uint32_t sizes[kBins];
            struct {
                uint16_t starts[kBins];
                uint16_t binOf[kRoom]; // of the entries in room
            };
        };
        uint64_t room[kRoom];
        uint64_t drawn[kDrawn]; // ascending
        uint32_t sums[kWarps];
    };
    static_assert(sizeof(uint16_t) * (kBins + kRoom) <= 4 * kBins);

    SharedStorage& shared;

    /// Calls put(place, entry) for each of the `count` <= kRoom distinct
    /// entries, by any thread, or returns false and has called it for none.
    /// Begins with the block in step, and ends so where it returns false.
    template <class Put>
    __device__ __forceinline__ bool sort(
            const uint64_t* entries,
            uint32_t count,
            Put put) {
        if (count < kDrawn) {
            return false;
        }
        for (uint32_t b = threadIdx.x; b < kBins; b += Threads) {
            shared.sizes[b] = 0;
        }
        draw(entries, count);
        uint64_t items[Items];
        uint32_t bins[Items]; // and above them, which of its bin it is
        bool isCrowded = false;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const uint32_t at = i * Threads + threadIdx.x;
            if (at < count) {
                items[i] = entries[at];
                const uint32_t bin = binOf(items[i]);
                const uint32_t arrival = atomicAdd(shared.sizes + bin, 1u);
                isCrowded = isCrowded || arrival >= kMaxBin;
                bins[i] = bin + arrival * kBins;
            }
        }
        if (__syncthreads_or(isCrowded)) {
            return false;
        }
        startBins();
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            if (i * Threads + threadIdx.x < count) {
                const uint32_t bin = bins[i] % kBins;
                const uint32_t slot = shared.starts[bin] + bins[i] / kBins;
                shared.room[slot] = items[i];
                shared.binOf[slot] = uint16_t(bin);
            }
        }
        __syncthreads();
        for (uint32_t at = threadIdx.x; at < count; at += Threads) {
            const uint64_t entry = shared.room[at];
            const uint32_t bin = shared.binOf[at];
            const uint32_t begin = shared.starts[bin];
            const uint32_t end =
                    bin + 1 < kBins ? shared.starts[bin + 1] : count;
            uint32_t place = begin;
            for (uint32_t j = begin; j < end; ++j) {
                place += shared.room[j] < entry;
            }
            put(place, entry);
        }
        return true;
    }

   private:
    /// One entry from each of as many equal parts, anywhere in it: keys may
    /// have a period. Their ranks are counted, by several threads each. Begins
    /// and ends with the block in step.
    __device__ __forceinline__ void draw(
            const uint64_t* entries,
            uint32_t count) {
        const uint32_t number = threadIdx.x / kHelpers;
        const uint32_t helper = threadIdx.x % kHelpers;
        const uint32_t from = number * count / kDrawn;
        const uint32_t to = (number + 1) * count / kDrawn;
        const uint64_t mine =
                entries[from + __umulhi(mixBits(number), to - from)];
        if (helper == 0) {
            shared.room[number] = mine;
        }
        __syncthreads();
        uint32_t rank = 0;
        for (uint32_t j = helper; j < kDrawn; j += kHelpers) {
            rank += shared.room[j] < mine;
        }
#pragma unroll
        for (uint32_t lanes = 1; lanes < kHelpers; lanes *= 2) {
            rank += __shfl_xor_sync(kFullWarp, rank, lanes);
        }
        if (helper == 0) {
            shared.drawn[rank] = mine;
        }
        __syncthreads();
    }

    /// Of an entry: in the order of entries, as floats are rounded so, and
    /// products of them with one factor.
    __device__ __forceinline__ uint32_t binOf(uint64_t entry) const {
        uint32_t number = 0;
#pragma unroll
        for (uint32_t step = kDrawn / 2; step >= 1; step /= 2) {
            number += entry >= shared.drawn[number + step] ? step : 0;
        }
        const uint64_t first = shared.drawn[number];
        // What is above the last is spread as what is below it.
        const uint32_t next = min(number + 1, kDrawn - 1);
        const uint64_t width = shared.drawn[next] - shared.drawn[next - 1];
        const uint64_t above = entry > first ? entry - first : 0;
        const float part =
                float(above) * __fdividef(float(kParts), float(width));
        return number * kParts + uint32_t(fminf(part, float(kParts - 1)));
    }

    /// Sizes of the bins to the places where they begin, which take half of the
    /// room. Begins and ends with the block in step.
    __device__ __forceinline__ void startBins() {
        const uint32_t first = threadIdx.x * kBinsPerThread;
        uint32_t sizes[kBinsPerThread];
        uint32_t sum = 0;
#pragma unroll
        for (uint32_t b = 0; b < kBinsPerThread; ++b) {
            sizes[b] = shared.sizes[first + b];
            sum += sizes[b];
        }
        // All have read theirs behind its barrier.
        uint32_t start = sumOfThreadsBefore<Threads>(sum, shared.sums);
#pragma unroll
        for (uint32_t b = 0; b < kBinsPerThread; ++b) {
            shared.starts[first + b] = uint16_t(start);
            start += sizes[b];
        }
        __syncthreads();
    }
};

} // namespace faiss_bits
