#pragma once

#include <algorithm>
#include <string>

#include "faiss_bits/words/EditDistanceIndex.h"

/// Range searches of words for the Python module, which makes the arrays once
/// their size is known.
namespace faiss_bits::python {

/// EditDistanceIndex::rangeSearch; the caller's own.
inline words::WordRange* rangeOfWords(
        const EditDistanceIndex& index,
        idx_t n,
        const uint8_t* queries,
        const idx_t* offsets,
        idx_t maxDistance,
        const std::string& method) {
    return new words::WordRange(
            index.rangeSearch(n, queries, offsets, maxDistance, method));
}

/// Number of results.
inline idx_t sizeOfRange(const words::WordRange& range) {
    return range.limits.back();
}

/// limits [queries + 1]; distances and ids [sizeOfRange].
inline void copyRange(
        const words::WordRange& range,
        idx_t* limits,
        int32_t* distances,
        idx_t* ids) {
    std::copy(range.limits.begin(), range.limits.end(), limits);
    std::copy(range.distances.begin(), range.distances.end(), distances);
    std::copy(range.ids.begin(), range.ids.end(), ids);
}

} // namespace faiss_bits::python
