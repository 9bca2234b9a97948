#pragma once

#include "kernels/select/short_rows/ShortRowsLaunch.h"

namespace faiss_bits {

/// A kernel of FewOfPacks.cuh: lanes of a row, packs of four keys of a lane,
/// and numbers of a lane among which the limit is sought; no packs: there is
/// none.
struct FewOfPacksShape {
    int lanes = 0;
    int packs = 0;
    int minima = 0;
};

/// Columns of a row that begins at the last key of a pack, that so many packs
/// of a lane hold.
constexpr int mostColsOfPacks(int lanes, int packs) {
    return packs * lanes * 4 - 3;
}

/// Every number of packs has a kernel up to 10, and every second one beyond.
constexpr int kLeastPacks = 3;
constexpr int kMostPacks = 16;
constexpr int packsBefore(int packs) {
    return packs <= 10 ? packs - 1 : packs - 2;
}
constexpr int packsAfter(int packs) {
    return packs < 10 ? packs + 1 : packs + 2;
}

/// Eight lanes have rows of so many columns, 16 longer ones.
constexpr int kLeastPackCols = 80;
constexpr int kMostEightLanesCols = mostColsOfPacks(8, kMostPacks);
constexpr int kMostPackCols = mostColsOfPacks(16, kMostPacks);
constexpr int lanesOfPacks(int cols) {
    return cols <= kMostEightLanesCols ? 8 : 16;
}

/// For up to mostColsOfPacks(lanes, kMostPacks).
constexpr int packsOf(int lanes, int cols) {
    int packs = kLeastPacks;
    while (mostColsOfPacks(lanes, packs) < cols) {
        packs = packsAfter(packs);
    }
    return packs;
}

/// The first so many packs of every lane lie before the end of each row that
/// the kernel takes.
constexpr int surePacks(int lanes, int packs) {
    const int least = lanes == 8 ? kLeastPackCols : kMostEightLanesCols + 1;
    const int cols = mostColsOfPacks(lanes, packsBefore(packs)) + 1;
    return (cols > least ? cols : least) / (lanes * 4);
}

/// Enqueues one launch. kernels/select/Select.cmake lists the instances.
template <int kLanes, int kPacks, int kMinima>
void launchFewOfPacks(const ShortRowsParams& params, cudaStream_t stream);

} // namespace faiss_bits
