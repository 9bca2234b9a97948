/// Columns of the matrix of an IVF search: vectors of a row's lists.
#pragma once

#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

/// A column as list << 32 | place in the list.
__device__ __forceinline__ uint64_t
placeOfColumn(const IvfParams& search, uint32_t row, uint32_t column) {
    const uint32_t* columns =
            search.columns + int64_t(row) * (search.nearProbes + 1);
    // The last probe that begins no later; empty ones before it begin there
    // too.
    uint32_t low = 0;
    uint32_t high = search.nearProbes;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        (columns[middle] <= column ? low : high) = middle;
    }
    return uint64_t(probedList(search, row, low)) << 32 |
            (column - columns[low]);
}

/// The id of a column.
__device__ __forceinline__ int64_t
idOfColumn(const IvfParams& search, uint32_t row, uint32_t column) {
    const uint64_t place = placeOfColumn(search, row, column);
    return listId(search.lists, uint32_t(place >> 32), uint32_t(place));
}

} // namespace faiss_bits
