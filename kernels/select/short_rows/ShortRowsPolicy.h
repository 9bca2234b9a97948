#pragma once

#include <algorithm>

#include "kernels/select/Select.h"
#include "kernels/select/short_rows/LaneListsLaunch.h"

namespace faiss_bits {

/// Of 16-bit keys: up to so many a kernel of entries is faster than the next
/// line's NarrowRow.cuh, which has room for twice as many (measured, H200;
/// docs/design/selection_short_rows.md).
struct MostNarrowK {
    int lanes;
    int items;
    int sorted;
    int mostK;
};
constexpr MostNarrowK kMostNarrowKOfKernels[] = {
        {8, 8, 2, 10},
        {8, 8, 4, 24},
        {8, 16, 8, 55},
        {16, 16, 2, 24},
        {32, 16, 1, 23},
        {32, 32, 2, 32}};

/// A line of Policies.inc: a kernel, and what it takes.
struct ShortRowsPolicy {
    int lanes = 0;
    int items = 0;
    int sorted = 0;
    int mostCols = 0;
    int mostK = 0;

    bool takes(const SelectProblem& p) const {
        const bool sortsAll = sorted == items;
        const int most = sizeOf(p.keyType) == 2 ? mostNarrowK() : mostK;
        return p.cols <= mostCols && p.k <= most && (sortsAll || p.k <= p.cols);
    }

    int mostNarrowK() const {
        for (const MostNarrowK& one : kMostNarrowKOfKernels) {
            if (one.lanes == lanes && one.items == items &&
                one.sorted == sorted) {
                return std::min(mostK, one.mostK);
            }
        }
        return mostK;
    }
};

inline bool areFewShortRows(const SelectProblem& p) {
    return p.rows <= kFewShortRows * p.device.multiprocessors;
}

/// k = 1 has kernels of its own (LeastOfRows.cuh).
inline bool hasLeastKernel(const SelectProblem& p) {
    return p.k == 1;
}

/// Whether NarrowLists.cuh takes so many of keys of 16 bits: where that was
/// faster than the kernels that halve (measured, H200;
/// docs/design/selection_short_rows.md).
inline bool hasNarrowLists(idx_t cols, int k) {
    if (k > kMostNarrowListsK || cols > idx_t(kMostNarrowListsCols)) {
        return false;
    }
    // k from 11 on, of longer rows: 1.05 to 1.14 of the time, random keys.
    return k <= kMostLaneListsK ||
            (cols > 64 && cols <= idx_t(kLongNarrowCols) &&
             (cols <= 256 || k > 10));
}

/// A few of the best of rows of some hundred columns have kernels of their own
/// (LaneLists.cuh, NarrowLists.cuh).
inline bool hasLaneLists(const SelectProblem& p) {
    if (p.k < 2 || p.k > p.cols || p.hasColBias() ||
        (p.k > 2 && p.cols <= kMostWholeCols)) {
        return false;
    }
    if (sizeOf(p.keyType) == 2) {
        return hasNarrowLists(p.cols, p.k);
    }
    return p.k <= kMostLaneListsK &&
            p.cols <=
            (areFewShortRows(p) ? kMostLaneListsCols : kMostManyLaneListsCols);
}

/// Of hasLaneLists.
inline LaneListsShape laneListsShape(const SelectProblem& p) {
    const idx_t sms = p.device.multiprocessors;
    const uint64_t rowsOfSm = (p.rows + sms - 1) / sms;
    return sizeOf(p.keyType) == 2 ? narrowListsShape(uint32_t(p.cols), rowsOfSm)
                                  : laneListsShape(uint32_t(p.cols), rowsOfSm);
}

/// The first line that takes the problem, or nullptr.
const ShortRowsPolicy* shortRowsPolicy(const SelectProblem& problem);

} // namespace faiss_bits
