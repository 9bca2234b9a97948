/// The part of a row that one block of a partial sort takes, whatever the row
/// is made of.
#pragma once

#include "research/queues/PartialBitonicParams.h"
#include "research/queues/QueueKeys.cuh"
#include "research/queues/QueueParams.h"

namespace faiss_bits {

struct SortRow {
    const PartialBitonicParams& p;
    uint32_t localRow; // of the launch
    uint32_t row;      // of the problem
    uint32_t split;
    idx_t begin;
    idx_t end;

    __device__ explicit SortRow(const PartialBitonicParams& params)
            : p(params),
              localRow(blockIdx.x / p.select.splits),
              row(p.select.firstRow + localRow),
              split(blockIdx.x % p.select.splits),
              begin(min(idx_t(split) * p.segment, p.length)),
              end(min(begin + p.segment, p.length)) {}

    /// Entries first, first + stride and so on; kNoEntry beyond the end. All
    /// loads are under way before the first is used.
    template <int Count>
    __device__ __forceinline__ void load(
            idx_t first,
            int stride,
            uint64_t (&to)[Count]) const {
        switch (p.source) {
            case SortSource::Keys:
                withKeyType(p.keyType, [&](auto* typed) {
                    loadKeys(rowOf(typed), first, stride, to);
                });
                break;
            case SortSource::Entries:
                loadEach(first, stride, to, [&](idx_t position) {
                    return size_t(p.length) * localRow + position;
                });
                break;
            case SortSource::Queues:
                loadEach(first, stride, to, [&](idx_t position) {
                    return slotOf(position);
                });
                break;
        }
    }

    /// Announces what a later load(first, stride) reads. Keys only.
    template <int Count>
    __device__ __forceinline__ void prefetch(idx_t first, int stride) const {
        withKeyType(p.keyType, [&](auto* typed) {
            const auto* keys = rowOf(typed);
#pragma unroll
            for (int i = 0; i < Count; ++i) {
                const idx_t column = first + idx_t(i) * stride;
                if (column < end) {
                    asm volatile(
                            "prefetch.global.L2 [%0];" ::"l"(keys + column));
                }
            }
        });
    }

    /// Place `place` of the block's k best.
    __device__ void write(int place, uint64_t entry) const {
        if (p.select.splits > 1) {
            const size_t list = size_t(localRow) * p.select.splits + split;
            p.select.outCandidates[list * p.select.k + place] = entry;
        } else {
            writeResultOf(p.keyType, p.select, row, place, entry);
        }
    }

   private:
    template <class T>
    __device__ __forceinline__ const T* rowOf(const T*) const {
        return static_cast<const T*>(p.select.keys) +
                size_t(p.select.rowStride) * row;
    }

    template <class T, int Count>
    __device__ __forceinline__ void loadKeys(
            const T* keys,
            idx_t first,
            int stride,
            uint64_t (&to)[Count]) const {
#pragma unroll
        for (int i = 0; i < Count; ++i) {
            const idx_t column = first + idx_t(i) * stride;
            to[i] = column < end
                    ? keyEntry(
                              keys[column], p.select.signMask, uint32_t(column))
                    : kNoEntry;
        }
    }

    template <int Count, class At>
    __device__ __forceinline__ void loadEach(
            idx_t first,
            int stride,
            uint64_t (&to)[Count],
            At at) const {
#pragma unroll
        for (int i = 0; i < Count; ++i) {
            const idx_t position = first + idx_t(i) * stride;
            to[i] = position < end ? p.entries[at(position)] : kNoEntry;
        }
    }

    /// Neighbouring threads of a row first, so that loads are coalesced.
    __device__ __forceinline__ size_t slotOf(idx_t position) const {
        const uint64_t lanes = uint64_t(1) << p.lanesLog;
        const uint64_t number =
                (uint64_t(localRow) << p.lanesLog) + (position & (lanes - 1));
        const uint64_t slot = uint64_t(position) >> p.lanesLog;
        const uint64_t warp = number / kQueueLanes;
        return (warp * p.queueSize + slot) * kQueueLanes + number % kQueueLanes;
    }
};

} // namespace faiss_bits
