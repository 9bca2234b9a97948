#include "kernels/select/short_rows/FewOfLanesPlan.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <iterator>

#include "kernels/common/Error.h"
#include "kernels/select/short_rows/ShortRowsPolicy.h"

namespace faiss_bits {

namespace {

constexpr idx_t kLanes = 32;
constexpr idx_t kLeastCols = 513;
constexpr idx_t kMostCols = 4096;
constexpr idx_t kMostNarrowCols = 8192;
constexpr int kMostKOfOne = 16; // number of a lane
constexpr int kMostKOfTwo = 48;
constexpr int kMostK = 80;

/// A kernel has so many keys of a lane at a time; a row takes as few turns as
/// it can, of as few keys.
constexpr int kItems[] = {24, 32, 48, 64};
constexpr int kNarrowItems[] = {32, 64};

template <int kCount>
int leastItems(const int (&items)[kCount], idx_t cols) {
    // A row may begin anywhere in 32 keys.
    const idx_t places = cols + kLanes - 1;
    const idx_t most = kLanes * items[kCount - 1];
    const idx_t turns = (places + most - 1) / most;
    return *std::find_if(std::begin(items), std::end(items), [&](int one) {
        return turns * kLanes * one >= places;
    });
}

template <class T>
FewOfLanesLaunch launchOf(FewOfLanesShape shape) {
#define BITS_FEW_OF_LANES(kItems, kMinima)                      \
    if (shape.items == kItems && shape.minima == kMinima) {     \
        return launchFewOfLanes<T, kItems, kMinima>;            \
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
    const bool isNarrow = sizeOf(p.keyType) == 2;
    if (p.hasColBias() || p.k < 2 || p.cols < kLeastCols || hasLaneLists(p)) {
        return {};
    }
    FewOfLanesShape shape;
    if (isNarrow) {
        // Rows of one chunk are NarrowRow's.
        if (p.k > kMostKOfTwo || p.cols <= 1024 || p.cols > kMostNarrowCols) {
            return {};
        }
        shape.items = leastItems(kNarrowItems, p.cols);
    } else {
        if (p.k > kMostK || p.cols > kMostCols) {
            return {};
        }
        shape.items = leastItems(kItems, p.cols);
    }
    shape.minima = p.k <= kMostKOfOne ? 1 : p.k <= kMostKOfTwo ? 2 : 4;
    return shape;
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
