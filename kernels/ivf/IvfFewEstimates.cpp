#include "kernels/ivf/IvfFewEstimates.h"

#include "kernels/ivf/IvfEstimateShape.h"
#include "kernels/ivf/ListCodes.h"

namespace faiss_bits {

namespace {

/// Of a list, on average, up to which a warp reads it for 16 of them at a time.
constexpr int64_t kMostQueries = 16;

/// Their codebook lies in shared memory.
bool areLookedUpInBlocks(const IvfLists& lists) {
    const int dims = lists.d / lists.decoding.numParts;
    const auto areOf = [&](int blockDims) {
        return areInBlocksOf(blockDims, lists.decoding.partBits, lists.d, dims);
    };
    return areOf(4) || areOf(2);
}

} // namespace

bool takesIvfFewEstimates(const IvfParams& params) {
    const IvfLists& lists = params.lists;
    return hasIvfFewEstimates(lists.coding) &&
            params.d <= IvfEstimateShape<true>::kDepth &&
            int64_t(params.rows) * params.lastProbe <=
            kMostQueries * lists.numLists &&
            (lists.coding != ListCoding::Product || areLookedUpInBlocks(lists));
}

} // namespace faiss_bits
