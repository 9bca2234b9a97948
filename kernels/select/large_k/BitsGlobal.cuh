/// Bits with its list in global memory (Hanak 2023, 5.6): one pass over a row,
/// entries up to a radius appended to a list; a full list is cut back to its
/// best k, whose last is the new radius. The list is not sorted.
///
/// Bound by: reading the keys while few pass; the cuts for large k.
/// Differs from the thesis, which says no more than that the list is in global
/// memory: the list has room for another k and more, so that a cut is paid for
/// by as many new entries, whatever k; it is found by radix digits, where
/// merging a sorted list would read k entries for every buffer; the first
/// radius comes from a random sample; and few rows are split over blocks.
#pragma once

#include "kernels/select/large_k/RowPasses.cuh"

namespace faiss_bits {

union BitsGlobalStorage {
    BlockKth::SharedStorage kth;
    OrderedPlaces::SharedStorage places;
};

/// The best `wanted` of one block's part of a row.
template <class T, class Row>
class BitsGlobalBody {
   public:
    __device__ BitsGlobalBody(
            BitsGlobalStorage& shared,
            const MultiPassParams& params,
            const Row& row,
            uint32_t begin,
            uint32_t end)
            : shared_(shared),
              p_(params),
              row_(row),
              begin_(begin),
              end_(end),
              list_(p_.lists + uint64_t(blockIdx.x) * p_.listCapacity) {}

    __device__ void run() {
        const uint32_t wanted = min(p_.wanted, end_ - begin_);
        const uint64_t radius = sampleRadius();
        listUpTo(radius);
        if (listed_ < wanted && radius < kLastEntry) {
            // The sample promised too much: about once in a million.
            listUpTo(kLastEntry);
        }
        uint64_t limit = kLastEntry;
        if (listed_ > p_.wanted) {
            limit = kthOfList(p_.wanted, kLastEntry, listed_);
        }
        writeUpTo(limit);
    }

   private:
    /// A radius that `wanted` entries are expected to pass, and some more: the
    /// r-th least of a sample, r five standard deviations above expectation.
    __device__ uint64_t sampleRadius() {
        const uint32_t count = end_ - begin_;
        const uint32_t samples =
                min(max(p_.wanted / 4, 4096u), 65536u) / 1024 * 1024;
        const float expected = float(p_.wanted) * samples / float(count);
        const uint32_t place =
                uint32_t(expected + 5.0f * sqrtf(expected) + 3.0f);
        if (uint64_t(samples) * 16 > count || place > samples / 2) {
            return kLastEntry;
        }
        for (uint32_t i = 4 * threadIdx.x; i < samples;
             i += 4 * kMultiPassThreads) {
            const uint64_t block =
                    uint64_t(p_.select.firstRow) * p_.splits + blockIdx.x;
            uint32_t places[4];
            drawPlaces(p_.seed + p_.pass, block * 65536 + i, count, places);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                list_[i + j] = row_.entryAt(begin_ + places[j]);
            }
        }
        __syncthreads();
        // Holes of the source count as its worst entries.
        const uint64_t radius = kthOfList(place, kNoEntry, samples);
        return radius < kLastEntry ? radius : kLastEntry;
    }

    /// The k-th of list_[0, count), none of them above `last`.
    __device__ uint64_t kthOfList(uint32_t k, uint64_t last, uint32_t count) {
        return BlockKth::find(
                shared_.kth,
                EntryRow(list_),
                0,
                count,
                {0, last},
                count,
                k,
                entryColumn(last) == entryColumn(kNoEntry)
                        ? entryColumn(kNoEntry)
                        : p_.select.cols - 1);
    }

    /// Fills the list with the entries up to the radius, in the order of
    /// columns, or with the best of them.
    __device__ __noinline__ void listUpTo(uint64_t radius) {
        const bool holdsAll = end_ - begin_ <= p_.listCapacity;
        listed_ = 0;
        forEachTile(row_, begin_, end_, [&](const auto& tile) {
            const InRange range{0, radius};
            const OrderedPlaces places(shared_.places, tile, range);
            places.forEach(
                    tile, listed_, range, [&](uint32_t place, uint64_t entry) {
                        list_[place] = entry;
                    });
            listed_ += places.total();
            __syncthreads();
            if (!holdsAll && listed_ + Row::Tile::kSize > p_.listCapacity) {
                radius = cut();
            }
        });
    }

    /// Keeps the best of a list that is full; the new radius.
    __device__ uint64_t cut() {
        const uint64_t kth = kthOfList(p_.wanted, kLastEntry, listed_);
        gatherInOrder(
                shared_.places,
                EntryRow(list_),
                0,
                listed_,
                {0, kth},
                0,
                [&](uint32_t place, uint64_t entry) { list_[place] = entry; });
        listed_ = p_.wanted;
        return kth;
    }

    __device__ void writeUpTo(uint64_t limit) {
        const uint32_t row = blockIdx.x / p_.splits;
        uint64_t* best = p_.best;
        if (best) {
            best += uint64_t(row) * p_.bestStride +
                    uint64_t(blockIdx.x % p_.splits) * p_.wanted;
        }
        gatherInOrder(
                shared_.places,
                EntryRow(list_),
                0,
                listed_,
                {0, limit},
                0,
                [&](uint32_t place, uint64_t entry) {
                    if (best) {
                        best[place] = entry;
                    } else {
                        putResult<T>(p_, row, place, entry);
                    }
                });
        if (best) {
            for (uint32_t i = listed_ + threadIdx.x; i < p_.wanted;
                 i += kMultiPassThreads) {
                best[i] = kNoEntry;
            }
        }
    }

    BitsGlobalStorage& shared_;
    const MultiPassParams& p_;
    const Row row_;
    const uint32_t begin_;
    const uint32_t end_;
    uint64_t* list_;
    uint32_t listed_ = 0;
};

/// rows * splits blocks. The first pass reads keys, later ones what the blocks
/// of the last one left. The calls spill 16 bytes, a few times a block.
template <class Keys>
__global__ void __launch_bounds__(kMultiPassThreads, 3)
        bitsGlobalKernel(const __grid_constant__ MultiPassParams p) {
    using FromKeys = BitsGlobalBody<typename Keys::Type, Keys>;
    using FromLists = BitsGlobalBody<typename Keys::Type, EntryRow>;
    __shared__ BitsGlobalStorage shared;
    const uint32_t row = blockIdx.x / p.splits;
    const uint32_t begin = blockIdx.x % p.splits * p.segment;
    const uint32_t length = p.from ? p.fromCount : p.select.cols;
    const uint32_t end = min(length - begin, p.segment) + begin;
    if (p.from) {
        const EntryRow entries(p.from + uint64_t(row) * p.fromStride);
        FromLists(shared, p, entries, begin, end).run();
    } else {
        const Keys keys(p.select, p.select.firstRow + row);
        FromKeys(shared, p, keys, begin, end).run();
    }
}

} // namespace faiss_bits
