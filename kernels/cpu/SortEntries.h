#pragma once

#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/cpu/OrderedEntry.h"

namespace faiss_bits::cpu {

/// Sorts entries into `to`: one bucket for each, about, by where its key is
/// between the least and the largest, and then by insertion, which finds them
/// nearly in order. Returns false, with nothing done, where some buckets would
/// hold many.
template <class T>
bool sortByBuckets(
        const OrderedEntry<T>* entries,
        OrderedEntry<T>* to,
        idx_t count,
        const OrderRange<T>& range) {
    constexpr idx_t kMostEntries = 192, kMostOfBucket = 16;
    if (count > kMostEntries) {
        return false;
    }
    const auto least = range.least, most = range.most;
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
        const OrderedEntry<T> entry = to[i];
        idx_t hole = i;
        for (; hole > 0 && entry < to[hole - 1]; --hole) {
            to[hole] = to[hole - 1];
        }
        to[hole] = entry;
    }
    return true;
}

/// The least and the largest key of some entries.
template <class T>
OrderRange<T> orderRange(const OrderedEntry<T>* entries, idx_t count) {
    OrderRange<T> range;
    for (idx_t i = 0; i < count; ++i) {
        range.include(entries[i].order());
    }
    return range;
}

/// The same where they are many: by where a key is between the least and the
/// largest, to so many bits that few entries share a place, a stable pass for
/// each half of these; then by insertion. Returns false, with entries of equal
/// keys in the order that they came if their ids ascend, where insertion is
/// more work than that.
template <class T>
bool sortByDigits(
        OrderedEntry<T>* entries,
        OrderedEntry<T>* other,
        idx_t count,
        const OrderRange<T>& range) {
    constexpr int kMostBits = 11;
    constexpr idx_t kMostEntries = idx_t(1) << 19, kMovesPerEntry = 4;
    if (count > kMostEntries) {
        return false;
    }
    const auto least = range.least;
    const int bits =
            std::clamp(int(std::bit_width(uint64_t(count))) - 2, 1, kMostBits);
    const int shift = std::max(
            0, int(std::bit_width(uint64_t(range.most - least))) - 2 * bits);
    const idx_t values = idx_t(1) << bits;
    const uint32_t low = uint32_t(values) - 1;
    uint32_t lowPlaces[1 << kMostBits], highPlaces[1 << kMostBits];
    std::fill_n(lowPlaces, values, 0u);
    std::fill_n(highPlaces, values, 0u);
    const auto digits = [&](const OrderedEntry<T>& entry) {
        return uint32_t((entry.order() - least) >> shift);
    };
    for (idx_t i = 0; i < count; ++i) {
        const uint32_t place = digits(entries[i]);
        ++lowPlaces[place & low];
        ++highPlaces[place >> bits];
    }
    uint32_t lowPlace = 0, highPlace = 0;
    for (idx_t i = 0; i < values; ++i) {
        lowPlace += std::exchange(lowPlaces[i], lowPlace);
        highPlace += std::exchange(highPlaces[i], highPlace);
    }
    for (idx_t i = 0; i < count; ++i) {
        other[lowPlaces[digits(entries[i]) & low]++] = entries[i];
    }
    for (idx_t i = 0; i < count; ++i) {
        entries[highPlaces[digits(other[i]) >> bits]++] = other[i];
    }
    idx_t moves = kMovesPerEntry * count;
    for (idx_t i = 1; i < count; ++i) {
        if (!(entries[i] < entries[i - 1])) {
            continue;
        }
        const OrderedEntry<T> entry = entries[i];
        idx_t hole = i;
        for (; hole > 0 && entry < entries[hole - 1]; --hole) {
            entries[hole] = entries[hole - 1];
        }
        entries[hole] = entry;
        moves -= i - hole;
        if (moves < 0) {
            return false;
        }
    }
    return true;
}

/// Sorts entries by key, then id. `other` has room for as many. Returns where
/// the sorted ones are: one of the two arrays.
///
/// By buckets or by two digits, where the keys are spread evenly enough; else a
/// radix sort by bytes that leaves out the bytes that all entries share, and
/// those of the ids if they ascend already; a comparison sort where there are
/// few entries. `range`: that of the keys.
template <class T>
OrderedEntry<T>* sortEntries(
        OrderedEntry<T>* entries,
        OrderedEntry<T>* other,
        idx_t count,
        bool idsAscend,
        const OrderRange<T>& range) {
    using Entry = OrderedEntry<T>;
    // From here on counting pays (measured).
    constexpr idx_t kFewEntries = 16, kFewForRadix = sizeof(T) == 4 ? 48 : 200;
    if (count <= kFewEntries) {
        std::sort(entries, entries + count);
        return entries;
    }
    if (sortByBuckets(entries, other, count, range)) {
        return other;
    }
    if (count <= kFewForRadix) {
        std::sort(entries, entries + count);
        return entries;
    }
    if (sortByDigits(entries, other, count, range)) {
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

/// Puts a few entries where they belong among the `count` of `sorted`, which
/// has room for all. Sorts the few.
template <class T>
void mergeEntries(
        OrderedEntry<T>* sorted,
        idx_t count,
        OrderedEntry<T>* few,
        idx_t fewCount) {
    std::sort(few, few + fewCount);
    for (idx_t left = fewCount, to = count + fewCount; left > 0;) {
        const bool isOfFew = count == 0 || sorted[count - 1] < few[left - 1];
        sorted[--to] = isOfFew ? few[--left] : sorted[--count];
    }
}

} // namespace faiss_bits::cpu
