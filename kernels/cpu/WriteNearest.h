#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// The result of a query, [outK]: `found` entries, the nearest first, and
/// (+max, -1) behind them, for similarities (-max, -1).
template <class T>
void writeNearest(
        const Setup<T>& setup,
        const OrderedEntry<T>* sorted,
        idx_t found,
        T* distances,
        idx_t* ids,
        idx_t outK) {
    constexpr T kMax = std::numeric_limits<T>::max();
    // NaN comes last, and is no result: as FAISS, whose IVF rests on it.
    while (found > 0 && std::isnan(sorted[found - 1].key())) {
        --found;
    }
    setup.common.writeEntries(
            sorted, found, setup.similarity, setup.vectors.ids, distances, ids);
    std::fill(
            distances + found,
            distances + outK,
            setup.similarity ? -kMax : kMax);
    std::fill(ids + found, ids + outK, idx_t(-1));
}

} // namespace faiss_bits::cpu
