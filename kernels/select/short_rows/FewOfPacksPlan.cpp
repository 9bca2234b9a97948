#include "kernels/select/short_rows/FewOfPacksPlan.h"

#include "kernels/common/Error.h"
#include "kernels/select/short_rows/ShortRowsPolicy.h"

namespace faiss_bits {

namespace {

constexpr int kMostK = 16;
constexpr int kMostKOf16Lanes = 8; // more: saw teeth 1.25 of the time
/// Of rows of three packs fewer are faster by lists of lanes.
constexpr int kLeastKOfThree = 5;

/// Numbers among which the limit of a row is sought: of more, fewer keys are
/// within it, and they take longer to sort.
constexpr int numbersFor(int k) {
    return k <= 3 ? 8 : k <= 8 ? 16 : 32;
}

bool takesResults(FewOfPacksShape shape, int k) {
    return k >= (shape.packs == 3 ? kLeastKOfThree : 2) &&
            k <= (shape.lanes == 16 ? kMostKOf16Lanes : kMostK);
}

} // namespace

FewOfPacksShape fewOfPacksShape(const SelectProblem& p) {
    if (sizeOf(p.keyType) != 4 || p.hasColBias() || p.cols < kLeastPackCols ||
        p.cols > kMostPackCols || areFewShortRows(p)) {
        return {};
    }
    FewOfPacksShape shape;
    shape.lanes = lanesOfPacks(int(p.cols));
    shape.packs = packsOf(shape.lanes, int(p.cols));
    shape.minima = (numbersFor(p.k) + shape.lanes - 1) / shape.lanes;
    return takesResults(shape, p.k) ? shape : FewOfPacksShape();
}

FewOfPacksLaunch fewOfPacksLaunch(FewOfPacksShape shape) {
#define BITS_FEW_OF_PACKS(kLanes, kPacks, kMinima)        \
    if (shape.lanes == kLanes && shape.packs == kPacks && \
        shape.minima == kMinima) {                        \
        return launchFewOfPacks<kLanes, kPacks, kMinima>; \
    }
#include "kernels/select/short_rows/FewOfPacks.inc"
#undef BITS_FEW_OF_PACKS
    throw Error("no kernel of this shape");
}

} // namespace faiss_bits
