#include "kernels/ivf/IvfFewEstimates.h"

#include "kernels/ivf/IvfEstimateShape.h"
#include "kernels/ivf/IvfTimes.h"

namespace faiss_bits {

namespace {

/// Of a list, on average, up to which a warp reads it for 16 of them at a time:
/// with 8 it took less time, with 32 this was not tried.
constexpr int64_t kMostQueries = 16;

} // namespace

bool takesIvfFewEstimates(const IvfParams& params) {
    const IvfLists& lists = params.lists;
    // A codebook lies in shared memory.
    return hasIvfFewEstimates(lists.coding) &&
            params.d <= IvfEstimateShape<true>::kDepth &&
            int64_t(params.rows) * params.lastProbe <=
            kMostQueries * lists.numLists &&
            (lists.coding != ListCoding::Product ||
             ivf_times::areDecodedInBlocks(lists));
}

} // namespace faiss_bits
