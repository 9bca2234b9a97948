/// Sorts a bucket of some thousand entries by their distances: about two bins
/// an entry, then each entry against the few of its bin, as in SpreadSort.cuh,
/// but straight from memory and with less shared memory.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/BlockScan.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// The entry's distance from the least there could be, for columns below
/// `cols`. Columns take the place of the key's missing bits, so that entries of
/// neighbouring keys lie as evenly as those of one key.
struct EntryDistance {
    uint32_t keyBit;
    uint32_t cols;

    __device__ __forceinline__ uint64_t operator()(uint64_t entry) const {
        return uint64_t(entryKey(entry) >> keyBit) * cols + entryColumn(entry);
    }
};

template <int Threads, int Items>
struct BucketSort {
    static constexpr uint32_t kRoom = Threads * Items;
    static constexpr int kBins = 4096;
    static constexpr int kBinsPerThread = kBins / Threads;
    static constexpr int kWarps = Threads / kWarpSize;
    static constexpr uint32_t kRangeThreads = 128;
    static constexpr int kRangeWarps = kRangeThreads / kWarpSize;

    /// With so many entries in one bin, the bucket is left to another sort.
    static constexpr uint32_t kMaxBin = 64;

    struct SharedStorage {
        uint4 bins[kBins / 4];
        uint64_t room[kRoom];
        uint64_t least[kRangeWarps];
        uint64_t greatest[kRangeWarps];
        uint32_t sums[kWarps];
        uint32_t row; // for the caller: of the bucket, and its first place
        uint32_t start;
    };

    SharedStorage& shared;
    EntryDistance distance;

    /// Calls put(place, entry) for each of the `count` <= kRoom distinct
    /// entries, by any thread, or returns false and has called it for none.
    /// Once for each storage.
    template <class Put>
    __device__ __forceinline__ bool sort(
            const uint64_t* entries,
            uint32_t count,
            Put put) {
        uint64_t items[Items];
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            const uint32_t at = i * Threads + threadIdx.x;
            items[i] = at < count ? entries[at] : kNoEntry;
        }
        shared.bins[threadIdx.x] = make_uint4(0, 0, 0, 0);
        shared.bins[threadIdx.x + Threads] = make_uint4(0, 0, 0, 0);
        const Bins bins = makeBins(entries, count);
        uint32_t* sizes = reinterpret_cast<uint32_t*>(shared.bins);
        uint32_t arrivals[(Items + 3) / 4] = {}; // in bytes
        bool isCrowded = false;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            if (i * Threads + threadIdx.x < count) {
                const uint32_t bin = bins.of(distance(items[i]));
                const uint32_t arrival = atomicAdd(sizes + bin, 1u);
                isCrowded = isCrowded || arrival >= kMaxBin;
                arrivals[i / 4] |= arrival << 8 * (i % 4);
            }
        }
        if (__syncthreads_or(isCrowded)) {
            return false;
        }
        startBins();
#pragma unroll
        for (int i = 0; i < Items; ++i) {
            if (i * Threads + threadIdx.x < count) {
                const uint32_t arrival = arrivals[i / 4] >> 8 * (i % 4) & 0xFF;
                const uint32_t start = sizes[bins.of(distance(items[i]))];
                shared.room[start + arrival] = items[i];
            }
        }
        __syncthreads();
        for (uint32_t at = threadIdx.x; at < count; at += Threads) {
            const uint64_t entry = shared.room[at];
            const uint32_t bin = bins.of(distance(entry));
            const uint32_t begin = sizes[bin];
            const uint32_t end = bin + 1 < kBins ? sizes[bin + 1] : count;
            uint32_t place = begin;
            if (end - begin > 1) {
                for (uint32_t j = begin; j < end; ++j) {
                    place += shared.room[j] < entry;
                }
            }
            put(place, entry);
        }
        return true;
    }

   private:
    /// Bins of equal width, the first and last one open.
    struct Bins {
        uint64_t least;
        int shift;       // of a distance to 32 bits
        uint32_t factor; // bins a unit of those, times 2^32

        __device__ __forceinline__ uint32_t of(uint64_t value) const {
            const uint64_t above = (value > least ? value - least : 0) >> shift;
            const uint32_t scaled = above >> 32 != 0 ? ~0u : uint32_t(above);
            return min(__umulhi(scaled, factor), uint32_t(kBins - 1));
        }
    };

    /// From what lies between the least and the greatest of 128 entries, and
    /// some more on both sides: a few that lie far away do no harm then. Begins
    /// anywhere and ends with the block in step.
    __device__ __forceinline__ Bins
    makeBins(const uint64_t* entries, uint32_t count) {
        if (threadIdx.x < kRangeThreads) {
            // From all over the bucket, which may come in order.
            const uint64_t mine =
                    distance(entries[threadIdx.x * count / kRangeThreads]);
            uint64_t least = mine;
            uint64_t greatest = mine;
#pragma unroll
            for (int lanes = kWarpSize / 2; lanes >= 1; lanes /= 2) {
                const uint64_t l = __shfl_xor_sync(kFullWarp, least, lanes);
                const uint64_t g = __shfl_xor_sync(kFullWarp, greatest, lanes);
                least = l < least ? l : least;
                greatest = g > greatest ? g : greatest;
            }
            if (threadIdx.x % kWarpSize == 0) {
                shared.least[threadIdx.x / kWarpSize] = least;
                shared.greatest[threadIdx.x / kWarpSize] = greatest;
            }
        }
        __syncthreads();
        uint64_t least = shared.least[0];
        uint64_t greatest = shared.greatest[0];
#pragma unroll
        for (int w = 1; w < kRangeWarps; ++w) {
            least = shared.least[w] < least ? shared.least[w] : least;
            greatest = shared.greatest[w] > greatest ? shared.greatest[w]
                                                     : greatest;
        }
        const uint64_t margin = (greatest - least) / 64 + 1;
        least = least > margin ? least - margin : 0;
        greatest = greatest < ~margin ? greatest + margin : ~uint64_t(0);
        const uint64_t range = greatest - least;
        Bins bins;
        bins.least = least;
        bins.shift = max(0, 32 - __clzll((long long)(range)));
        const float scaled = float(uint32_t(range >> bins.shift));
        // At most 2^32 - 256, the greatest float below 2^32.
        bins.factor = __float2uint_rz(
                fminf(4294967040.0f, kBins * 4294967296.0f / (scaled + 1)));
        return bins;
    }

    /// Sizes of the bins to the places where they begin. Begins and ends with
    /// the block in step.
    __device__ __forceinline__ void startBins() {
        static_assert(kBinsPerThread == 8);
        uint4* mine = shared.bins + 2 * threadIdx.x;
        uint4 a = mine[0];
        uint4 b = mine[1];
        const uint32_t sum = a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w;
        uint32_t start = sumOfThreadsBefore<Threads>(sum, shared.sums);
        const auto next = [&](uint32_t& size) {
            const uint32_t begin = start;
            start += size;
            size = begin;
        };
        next(a.x), next(a.y), next(a.z), next(a.w);
        next(b.x), next(b.y), next(b.z), next(b.w);
        mine[0] = a;
        mine[1] = b;
        __syncthreads();
    }
};

} // namespace faiss_bits
