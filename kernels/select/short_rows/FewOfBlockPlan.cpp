#include "kernels/select/short_rows/FewOfBlockPlan.h"

#include "kernels/common/Error.h"
#include "kernels/select/short_rows/ShortRowsPolicy.h"

namespace faiss_bits {

namespace {

/// Up to half of the numbers are among the k best.
constexpr int kMostK = kFewOfBlockNumbers / 2;
/// Shorter rows with few results are faster by a warp in two turns
/// (FewOfLanes.cuh), with more by a block.
constexpr int kMostKOfLanes = 40;
constexpr idx_t kLeastCols = 2049;
constexpr idx_t kLeastColsOfFew = 3042;

} // namespace

int fewOfBlockItems(const SelectProblem& p) {
    if (sizeOf(p.keyType) != 4 || p.hasColBias() || p.k < 2 || p.k > kMostK ||
        p.cols < (p.k <= kMostKOfLanes ? kLeastColsOfFew : kLeastCols) ||
        areFewShortRows(p)) {
        return 0;
    }
    for (int items : kFewOfBlockItems) {
        if (p.cols <= mostColsOfBlock(items)) {
            return items;
        }
    }
    return 0;
}

FewOfBlockLaunch fewOfBlockLaunch(int items) {
    switch (items) {
        case 40:
            return launchFewOfBlock<40>;
        case 32:
            return launchFewOfBlock<32>;
        case 48:
            return launchFewOfBlock<48>;
        case 64:
            return launchFewOfBlock<64>;
        default:
            throw Error("no kernel of so many keys of a thread");
    }
}

} // namespace faiss_bits
