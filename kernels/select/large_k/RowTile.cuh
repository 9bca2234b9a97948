/// How the multi-pass kernels read a row: a tile at a time, each thread a few
/// packs of neighbours, so that the order of (pack, thread, item) is the order
/// of columns.
#pragma once

#include "kernels/device/Entry.cuh"
#include "kernels/select/large_k/MultiPassParams.h"

namespace faiss_bits {

constexpr int kMultiPassThreads = 256;
/// The largest entry that can stand for a key; kNoEntry is above it.
constexpr uint64_t kLastEntry = kNoEntry - 1;

/// A row of keys. Biased: (key + colBias) + rowBias, not below the floor.
template <class T, bool HasBias>
class KeyRow {
   public:
    using Type = T;

    __device__ KeyRow(const SelectParams& params, uint32_t rowOfKeys)
            : row_(static_cast<const T*>(params.keys) +
                   params.rowStride * rowOfKeys),
              colBias_(params.colBias),
              rowBias_(
                      HasBias && params.rowBias ? params.rowBias[rowOfKeys]
                                                : 0.0f),
              floor_(params.floor),
              signMask_(params.signMask),
              vectorLoads_(params.vectorLoads) {}

    __device__ __forceinline__ uint64_t entryAt(uint32_t column) const {
        return makeEntry(keyOf(__ldg(row_ + column), column), column);
    }

    /// The ordered keys of N columns into keys[], all loads in flight before
    /// the first use, as KeyTile::loadPart has them and says why. `isThere(i)`
    /// says which are read.
    template <int N, class ColumnOf, class IsThere>
    __device__ __forceinline__ void keysAt(
            uint32_t (&keys)[N],
            const ColumnOf& columnOf,
            const IsThere& isThere) const {
        T loaded[N];
#pragma unroll
        for (int i = 0; i < N; ++i) {
            loaded[i] = T(0.0f);
            if (isThere(i)) {
                loaded[i] = __ldg(row_ + columnOf(i));
            }
        }
#pragma unroll
        for (int i = 0; i < N; ++i) {
            // No bias is there behind the row's end.
            keys[i] =
                    !HasBias || isThere(i) ? keyOf(loaded[i], columnOf(i)) : 0;
        }
    }

    class Tile {
       public:
        static constexpr int kPack = 16 / sizeof(T);
        static constexpr int kPacks = 16 / kPack;
        static constexpr int kItems = kPack * kPacks;
        static constexpr uint32_t kSize = kMultiPassThreads * kItems;

        /// Columns from `begin`, as far as they are below `end`.
        __device__ __forceinline__ void load(
                const KeyRow& row,
                uint32_t begin,
                uint32_t end) {
            begin_ = begin;
            end_ = end;
            if (end - begin >= kSize && row.vectorLoads_) {
                loadPacks(row);
                return;
            }
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                const uint32_t c = column(i);
                keys_[i] = c < end ? row.keyOf(__ldg(row.row_ + c), c) : 0;
            }
        }

        /// Item i of this thread; kNoEntry behind the end.
        __device__ __forceinline__ uint64_t entry(int i) const {
            const uint32_t c = column(i);
            return c < end_ ? makeEntry(keys_[i], c) : kNoEntry;
        }

       private:
        struct alignas(16) Pack {
            T values[kPack];
        };

        __device__ __forceinline__ uint32_t column(int i) const {
            return begin_ + (i / kPack) * (kMultiPassThreads * kPack) +
                    threadIdx.x * kPack + i % kPack;
        }

        __device__ __forceinline__ void loadPacks(const KeyRow& row) {
            Pack packs[kPacks];
#pragma unroll
            for (int v = 0; v < kPacks; ++v) {
                reinterpret_cast<uint4&>(packs[v]) =
                        __ldg(reinterpret_cast<const uint4*>(
                                row.row_ + column(v * kPack)));
            }
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                keys_[i] = row.keyOf(
                        packs[i / kPack].values[i % kPack], column(i));
            }
        }

        uint32_t begin_;
        uint32_t end_;
        uint32_t keys_[kItems];
    };

   private:
    __device__ __forceinline__ uint32_t keyOf(T key, uint32_t column) const {
        float value = toFloat(key);
        if constexpr (HasBias) {
            value = (value + __ldg(colBias_ + column)) + rowBias_;
            value = value < floor_ ? floor_ : value; // NaN stays
        }
        return orderedKey(__uint_as_float(__float_as_uint(value) ^ signMask_));
    }

    const T* row_;
    const float* colBias_;
    float rowBias_;
    float floor_;
    uint32_t signMask_;
    bool vectorLoads_;
};

/// An array of entries; kNoEntry is a hole. 16-byte aligned.
class EntryRow {
   public:
    __device__ explicit EntryRow(const uint64_t* entries) : row_(entries) {}

    __device__ __forceinline__ uint64_t entryAt(uint32_t place) const {
        return row_[place];
    }

    class Tile {
       public:
        static constexpr int kPack = 2;
        static constexpr int kPacks = 4;
        static constexpr int kItems = kPack * kPacks;
        static constexpr uint32_t kSize = kMultiPassThreads * kItems;

        /// `begin` is even. Not through the read-only cache: the block may
        /// have written the entries itself.
        __device__ __forceinline__ void load(
                const EntryRow& row,
                uint32_t begin,
                uint32_t end) {
#pragma unroll
            for (int v = 0; v < kPacks; ++v) {
                const uint32_t at =
                        begin + (v * kMultiPassThreads + threadIdx.x) * kPack;
                ulonglong2 pack = make_ulonglong2(kNoEntry, kNoEntry);
                if (at + 1 < end) {
                    pack = *reinterpret_cast<const ulonglong2*>(row.row_ + at);
                } else if (at < end) {
                    pack.x = row.row_[at];
                }
                entries_[v * kPack] = pack.x;
                entries_[v * kPack + 1] = pack.y;
            }
        }

        __device__ __forceinline__ uint64_t entry(int i) const {
            return entries_[i];
        }

       private:
        uint64_t entries_[kItems];
    };

   private:
    const uint64_t* row_;
};

/// Calls visit(tile) for every tile of [begin, end), which every thread of the
/// block enters.
template <class Row, class Visit>
__device__ __forceinline__ void forEachTile(
        const Row& row,
        uint32_t begin,
        uint32_t end,
        Visit visit) {
    using Tile = typename Row::Tile;
    for (uint32_t at = begin; at < end; at += Tile::kSize) {
        Tile tile;
        tile.load(row, at, end);
        visit(tile);
    }
}

/// Calls use(row) with what the candidates of a row are read from.
template <class Keys, class Use>
__device__ __forceinline__ void withSource(
        const MultiPassParams& p,
        uint32_t row,
        const RowState& state,
        Use use) {
    if (state.source == CandidateSource::Keys) {
        use(Keys(p.select, p.select.firstRow + row));
    } else {
        const int buffer = state.source == CandidateSource::BufferA ? 0 : 1;
        use(EntryRow(p.buffers[buffer] + uint64_t(row) * p.capacities[buffer]));
    }
}

/// The part of [0, count) that one split reads.
struct SplitRange {
    uint32_t begin;
    uint32_t end; // begin: nothing is left for this split

    __device__ SplitRange(uint32_t count, uint32_t splits, uint32_t split) {
        const uint64_t grains =
                (uint64_t(count) + kSplitGrain - 1) / kSplitGrain;
        const uint64_t segment = (grains + splits - 1) / splits * kSplitGrain;
        const uint64_t first = segment * split;
        begin = uint32_t(first < count ? first : count);
        end = uint32_t(first + segment < count ? first + segment : count);
    }

    /// Splits that have something to read.
    __device__ static uint32_t active(uint32_t count, uint32_t splits) {
        const uint32_t segment = SplitRange(count, splits, 0).end;
        return segment == 0
                ? 0
                : uint32_t((uint64_t(count) + segment - 1) / segment);
    }
};

} // namespace faiss_bits
