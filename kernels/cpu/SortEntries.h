#pragma once

#include <algorithm>
#include <vector>

#include "kernels/cpu/OrderedEntry.h"

namespace faiss_bits::cpu {

/// Sorts entries by key, then id. `other` has room for as many. Returns where
/// the sorted ones are: one of the two arrays.
///
/// A radix sort by bytes that leaves out the bytes that all entries share, and
/// those of the ids if they ascend already; a comparison sort where there are
/// few entries.
template <class T>
OrderedEntry<T>* sortEntries(
        OrderedEntry<T>* entries,
        OrderedEntry<T>* other,
        idx_t count,
        bool idsAscend) {
    using Entry = OrderedEntry<T>;
    // From here on counting pays (measured: 100 to 300 entries, by the type).
    constexpr idx_t kFewEntries = sizeof(T) == 4 ? 128 : 400;
    if (count <= kFewEntries) {
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
