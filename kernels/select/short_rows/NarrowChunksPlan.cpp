#include "kernels/select/short_rows/NarrowChunksPlan.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/common/Error.h"
#include "kernels/select/short_rows/FewOfLanesPlan.h"
#include "kernels/select/short_rows/ShortRowsPolicy.h"

namespace faiss_bits {

namespace {

/// Shorter rows are one chunk of NarrowRow.cuh.
constexpr idx_t kLeastCols = 1025;
constexpr idx_t kMostCols = 16384;
constexpr int kLeastK = 17;
/// In rows that leave the second chunk half empty (measured, H200): up to 33
/// one run of the best took 1.5 of the time, and from 177 on eight numbers of a
/// lane are too few.
constexpr idx_t kLeastColsOfAll = 3072;
constexpr int kLeastKOfShort = 34;
constexpr int kMostKOfEight = 176;

template <class T>
NarrowChunksLaunch launchOf(int sorted) {
    switch (sorted) {
        case 8:
            return launchNarrowChunks<T, 8>;
        case 16:
            return launchNarrowChunks<T, 16>;
        default:
            throw Error("no kernel of so many numbers of a lane");
    }
}

} // namespace

int narrowChunksSorted(const SelectProblem& p) {
    if (sizeOf(p.keyType) != 2 || p.hasColBias() || areFewShortRows(p) ||
        p.k < (p.cols < kLeastColsOfAll ? kLeastKOfShort : kLeastK) ||
        p.cols < kLeastCols || p.cols > kMostCols || p.k > p.cols ||
        fewOfLanesShape(p).items > 0) {
        return 0;
    }
    for (int sorted : {8, 16}) {
        if (sorted == 8 && p.cols < kLeastColsOfAll && p.k > kMostKOfEight) {
            continue;
        }
        if (p.k <= mostKOfNarrowChunks(sorted)) {
            return sorted;
        }
    }
    return 0;
}

NarrowChunksLaunch narrowChunksLaunch(DataType type, int sorted) {
    return type == DataType::Float16 ? launchOf<__half>(sorted)
                                     : launchOf<__nv_bfloat16>(sorted);
}

} // namespace faiss_bits
