#pragma once

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "kernels/cpu/OrderedEntry.h"

namespace faiss_bits::cpu {

/// Sorts entries into `to`: one bucket for each, about, by where its key is
/// between the least and the largest, and then by insertion, which finds them
/// nearly in order. Returns false, with nothing done, where some buckets would
/// hold many.
template <class Entry>
bool sortByBuckets(const Entry* entries, Entry* to, idx_t count) {
    constexpr idx_t kMostEntries = 192, kMostOfBucket = 16;
    if (count > kMostEntries) {
        return false;
    }
    auto least = entries[0].order();
    auto most = least;
    for (idx_t i = 1; i < count; ++i) {
        least = std::min(least, entries[i].order());
        most = std::max(most, entries[i].order());
    }
    const int bits = std::bit_width(uint64_t(count));
    const int shift = std::max(0, int(std::bit_width(most - least)) - bits);
    uint16_t places[2 * kMostEntries];
    const idx_t buckets = idx_t((most - least) >> shift) + 1;
    std::fill(places, places + buckets, uint16_t(0));
    for (idx_t i = 0; i < count; ++i) {
        ++places[(entries[i].order() - least) >> shift];
    }
    uint16_t place = 0, fullest = 0;
    for (idx_t i = 0; i < buckets; ++i) {
        fullest = std::max(fullest, places[i]);
        place += std::exchange(places[i], place);
    }
    if (fullest > kMostOfBucket) {
        return false;
    }
    for (idx_t i = 0; i < count; ++i) {
        to[places[(entries[i].order() - least) >> shift]++] = entries[i];
    }
    for (idx_t i = 1; i < count; ++i) {
        const Entry entry = to[i];
        idx_t hole = i;
        for (; hole > 0 && entry < to[hole - 1]; --hole) {
            to[hole] = to[hole - 1];
        }
        to[hole] = entry;
    }
    return true;
}

/// Sorts entries by key, then id. `other` has room for as many. Returns where
/// the sorted ones are: one of the two arrays.
///
/// By buckets, where the keys are spread evenly enough; else a radix sort by
/// bytes that leaves out the bytes that all entries share, and those of the ids
/// if they ascend already; a comparison sort where there are few entries.
template <class T>
OrderedEntry<T>* sortEntries(
        OrderedEntry<T>* entries,
        OrderedEntry<T>* other,
        idx_t count,
        bool idsAscend) {
    using Entry = OrderedEntry<T>;
    // From here on counting pays (measured).
    constexpr idx_t kFewEntries = 16, kFewForRadix = sizeof(T) == 4 ? 48 : 200;
    if (count <= kFewEntries) {
        std::sort(entries, entries + count);
        return entries;
    }
    if (sortByBuckets(entries, other, count)) {
        return other;
    }
    if (count <= kFewForRadix) {
        std::sort(entries, entries + count);
        return entries;
    }
    constexpr int kBytes = Entry::kBytes;
    const int firstByte = idsAscend ? Entry::kFirstKeyByte : 0;
    uint32_t counts[kBytes][256];
    std::fill(&counts[firstByte][0], &counts[0][0] + kBytes * 256, 0u);
    for (idx_t i = 0; i < count; ++i) {
        for (int byte = firstByte; byte < kBytes; ++byte) {
            ++counts[byte][entries[i].byte(byte)];
        }
    }
    for (int byte = firstByte; byte < kBytes; ++byte) {
        uint32_t* places = counts[byte];
        if (places[entries[0].byte(byte)] == count) {
            continue;
        }
        uint32_t place = 0;
        for (int value = 0; value < 256; ++value) {
            place += std::exchange(places[value], place);
        }
        for (idx_t i = 0; i < count; ++i) {
            other[places[entries[i].byte(byte)]++] = entries[i];
        }
        std::swap(entries, other);
    }
    return entries;
}

} // namespace faiss_bits::cpu
