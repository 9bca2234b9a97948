/// SpreadSort.cuh for keys of both signs, or up to zero: entries are spread by
/// the differences of their numbers. By the differences of their bits most bins
/// are for numbers next to zero, and entries lie together in the others.
#pragma once

#include <cfloat>

#include "kernels/device/SpreadSort.cuh"

namespace faiss_bits {

template <int Threads, int Items>
struct BlockStraightSpread : BlockSpreadSort<Threads, Items> {
    using Base = BlockSpreadSort<Threads, Items>;
    using Base::kMaxBin;
    using Base::kSize;

    /// As select(), in one round, where that gave up. False, and nothing is
    /// put, where keys are not of both signs or up to zero, or many lie
    /// together; the block is in step then.
    template <class Put>
    __device__ __forceinline__ bool selectStraight(
            const uint64_t* entries,
            int count,
            uint64_t limit,
            int k,
            uint64_t* other,
            Put put) {
        uint32_t* bins = this->shared.bins;
        uint64_t to = limit;
        uint64_t second;
        this->findRange(entries, count, 0, to, second);
        const float least = keyValue(entryKey(second));
        const float width = keyValue(entryKey(to)) - least;
        // Not of NaN, nor where it or the quotient would be infinite.
        if (entryKey(second) >= kZeroKey || entryKey(to) < kZeroKey ||
            !(width >= FLT_MIN * kSize && width <= FLT_MAX)) {
            __syncthreads();
            return false;
        }
        const float scale = float(kSize) / width;
        // Differences, products and whole parts are in order as the numbers.
        const auto binOf = [&](uint64_t e) {
            const float part = (keyValue(entryKey(e)) - least) * scale;
            return min(uint32_t(fmaxf(part, 0.0f)), uint32_t(kSize - 1));
        };
        for (int at = threadIdx.x; at < count; at += Threads) {
            const uint64_t e = entries[at];
            if (e <= to) {
                atomicAdd(&bins[binOf(e)], 1);
            }
        }
        __syncthreads();
        const bool isCrowded = this->startBins(k) < uint32_t(kSize);
        __syncthreads();
        if (isCrowded) {
            return false;
        }
        const uint32_t size = k + kMaxBin;
        for (int at = threadIdx.x; at < count; at += Threads) {
            const uint64_t e = entries[at];
            if (e <= to) {
                const uint32_t slot = atomicAdd(&bins[binOf(e)], 1);
                if (slot < size) {
                    other[slot] = e;
                }
            }
        }
        __syncthreads();
        const uint32_t last = min(size, bins[kSize - 1]);
        for (uint32_t at = threadIdx.x; at < last; at += Threads) {
            const uint64_t e = other[at];
            const uint32_t bin = binOf(e);
            const uint32_t end = bins[bin];
            uint32_t place = bin > 0 ? bins[bin - 1] : 0;
            if (place < uint32_t(k)) {
                for (uint32_t j = place; j < end; ++j) {
                    place += other[j] < e;
                }
                if (place < uint32_t(k)) {
                    put(place, e);
                }
            }
        }
        return true;
    }
};

} // namespace faiss_bits
