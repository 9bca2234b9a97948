/// Columns of the matrix of an IVF search: vectors of a row's lists.
#pragma once

#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

/// The id of a column; `columns` are those of the row.
__device__ __forceinline__ int64_t idOfColumn(
        const IvfParams& search,
        uint32_t row,
        const uint32_t* columns,
        uint32_t column) {
    // The last probe that begins no later; empty ones before it begin there
    // too.
    uint32_t low = 0;
    uint32_t high = search.nearProbes;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        (columns[middle] <= column ? low : high) = middle;
    }
    const uint32_t list = probedList(search, row, low);
    return listId(search.lists, list, column - columns[low]);
}

} // namespace faiss_bits
