#include "kernels/select/short_rows/FewOfLanesPlan.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <iterator>

#include "kernels/common/Error.h"
#include "kernels/select/short_rows/FewOfBlockPlan.h"
#include "kernels/select/short_rows/ShortRowsPolicy.h"

namespace faiss_bits {

namespace {

constexpr idx_t kLanes = 32;
constexpr idx_t kLeastCols = 513;
constexpr idx_t kMostCols = 4096;
constexpr idx_t kMostNarrowCols = 8192;
constexpr int kMostKOfOne = 16; // number of a lane
constexpr int kMostKOfTwo = 48;
constexpr int kMostK = 64;        // rows of one turn
constexpr int kMostKOfTurns = 40; // of several
constexpr int kMostKOfShort = 32; // of up to 1,024 columns
constexpr int kMostNarrowK = 32;  // of one turn
constexpr int kMostNarrowKOfTurns = 16;

/// A kernel has so many keys of a lane at a time; a row takes as few turns as
/// it can, of as few keys.
constexpr int kItems[] = {24, 32, 48, 64};
constexpr int kNarrowItems[] = {32, 64};

/// A row may begin anywhere in 32 keys.
idx_t turnsOf(idx_t cols, int items) {
    return (cols + kLanes - 1 + kLanes * items - 1) / (kLanes * items);
}

template <int kCount>
int leastItems(const int (&items)[kCount], idx_t cols) {
    const idx_t turns = turnsOf(cols, items[kCount - 1]);
    return *std::find_if(std::begin(items), std::end(items), [&](int one) {
        return turnsOf(cols, one) <= turns;
    });
}

template <class T>
FewOfLanesLaunch launchOf(FewOfLanesShape shape) {
#define BITS_FEW_OF_LANES(kItems, kMinima)                  \
    if (shape.items == kItems && shape.minima == kMinima) { \
        return launchFewOfLanes<T, kItems, kMinima>;        \
    }
    BITS_FEW_OF_LANES(32, 1)
    BITS_FEW_OF_LANES(32, 2)
    BITS_FEW_OF_LANES(64, 1)
    BITS_FEW_OF_LANES(64, 2)
    if constexpr (sizeof(T) == 4) {
        BITS_FEW_OF_LANES(24, 1)
        BITS_FEW_OF_LANES(24, 2)
        BITS_FEW_OF_LANES(24, 4)
        BITS_FEW_OF_LANES(32, 4)
        BITS_FEW_OF_LANES(48, 1)
        BITS_FEW_OF_LANES(48, 2)
        BITS_FEW_OF_LANES(48, 4)
        BITS_FEW_OF_LANES(64, 4)
    }
#undef BITS_FEW_OF_LANES
    throw Error("no kernel of this shape");
}

} // namespace

FewOfLanesShape fewOfLanesShape(const SelectProblem& p) {
    if (p.hasColBias() || p.k < 2 || p.cols < kLeastCols || hasLaneLists(p) ||
        fewOfBlockItems(p) > 0) {
        return {};
    }
    const bool isOneTurn = turnsOf(p.cols, std::end(kItems)[-1]) == 1;
    if (sizeOf(p.keyType) == 2) {
        // Rows of one chunk are NarrowRow's.
        if (p.cols <= 1024 || p.cols > kMostNarrowCols ||
            p.k > (isOneTurn ? kMostNarrowK : kMostNarrowKOfTurns)) {
            return {};
        }
        return {leastItems(kNarrowItems, p.cols), p.k <= kMostKOfOne ? 1 : 2};
    }
    const int mostK = p.cols <= 1024 ? kMostKOfShort
            : isOneTurn              ? kMostK
                                     : kMostKOfTurns;
    if (p.k > mostK || p.cols > kMostCols) {
        return {};
    }
    // With more numbers a limit is closer, and takes longer.
    return {leastItems(kItems, p.cols),
            p.k <= kMostKOfOne           ? 1
                    : p.k <= kMostKOfTwo ? 2
                                         : 4};
}

FewOfLanesLaunch fewOfLanesLaunch(DataType type, FewOfLanesShape shape) {
    switch (type) {
        case DataType::Float16:
            return launchOf<__half>(shape);
        case DataType::BFloat16:
            return launchOf<__nv_bfloat16>(shape);
        default:
            return launchOf<float>(shape);
    }
}

} // namespace faiss_bits
