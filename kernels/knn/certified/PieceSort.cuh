/// Lists of more entries than a block holds in registers: pieces that are
/// sorted, and the place of an entry, which is its own in its piece and that
/// before which it would stand in each of the others. Blocks may have a piece
/// each, and then some entries each.
///
/// Bound by: of a piece the latency of 66 comparisons; of a place that of 12
/// loads, for a few pieces at a time.
#pragma once

#include "kernels/device/Bitonic.cuh"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

/// Functions are calls: kernels that have these at their end keep the registers
/// of what they do before.
template <int Threads>
struct PieceSort {
    static constexpr uint32_t kPiece = 2048;
    static constexpr int kItems = int(kPiece) / Threads;
    using Bitonic = BlockBitonic<Threads, kItems>;
    using SharedStorage = typename Bitonic::SharedStorage;

    /// A piece of a list of `count` entries, the one from `first` on, sorted
    /// from one array to another, or in its place. Nothing, if the list has
    /// none there. All threads of the block call it, and it begins and ends
    /// with the block in step.
    __device__ __noinline__ static void sort(
            SharedStorage& shared,
            const uint64_t* from,
            uint64_t* to,
            uint32_t first,
            uint32_t count) {
        if (first >= count) {
            return;
        }
        const uint32_t size = min(kPiece, count - first);
        uint64_t items[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t at = i * Threads + threadIdx.x;
            items[i] = at < size ? from[first + at] : kNoEntry;
        }
        Bitonic{shared}.sort(items, true, EntryLess{});
        __syncthreads(); // all are read
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t at = threadIdx.x * kItems + i;
            if (at < size) {
                to[first + at] = items[i];
            }
        }
        __syncthreads();
    }

    /// The place of entries[at] among `count` distinct ones, the pieces of
    /// which are sorted.
    __device__ __noinline__ static uint32_t placeOf(
            const uint64_t* entries,
            uint32_t count,
            uint32_t at) {
        constexpr int kTogether = 4; // pieces, whose loads do not wait
        const uint64_t mine = entries[at];
        const uint32_t own = at / kPiece;
        uint32_t place = at % kPiece;
        const uint32_t pieces = (count + kPiece - 1) / kPiece;
        for (uint32_t begin = 0; begin < pieces; begin += kTogether) {
            uint32_t below[kTogether] = {};
#pragma unroll 1
            for (uint32_t step = kPiece; step >= 1; step /= 2) {
#pragma unroll
                for (int j = 0; j < kTogether; ++j) {
                    const uint32_t piece = begin + j;
                    const uint32_t end = below[j] + step;
                    if (piece != own && end <= kPiece &&
                        piece * kPiece + end <= count &&
                        entries[piece * kPiece + end - 1] < mine) {
                        below[j] = end;
                    }
                }
            }
#pragma unroll
            for (int j = 0; j < kTogether; ++j) {
                place += below[j];
            }
        }
        return place;
    }

    /// The greatest entry, if there is one.
    __device__ __forceinline__ static uint64_t greatest(
            const uint64_t* entries,
            uint32_t count) {
        uint64_t most = entries[count - 1];
        for (uint32_t end = kPiece; end < count; end += kPiece) {
            const uint64_t last = entries[end - 1];
            most = last > most ? last : most;
        }
        return most;
    }
};

} // namespace faiss_bits
