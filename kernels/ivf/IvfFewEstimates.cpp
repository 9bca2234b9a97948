#include "kernels/ivf/IvfFewEstimates.h"

#include "kernels/ivf/IvfChoice.h"
#include "kernels/ivf/IvfEstimateShape.h"
#include "kernels/ivf/IvfTimes.h"

namespace faiss_bits {

namespace {

/// Of a list, on average, up to which a warp reads it for 16, and for 32 of
/// them at a time: with 8 16 took less time, with 20 32, with 80 neither
/// (docs/design/ivf_many_queries.md, "Few queries a list").
constexpr int64_t kMostOfFew = 16;
constexpr int64_t kMostOfMore = 24;

/// Rows that score their candidates for themselves: as many as were timed.
constexpr idx_t kMostRows = 4096;
/// And neighbours of all of them for 32 vectors of the lists, up to which they
/// do (H200, 128 to 4,096 rows, docs/design/ivf_many_queries.md). Vectors of
/// float32 are read 32 at a time for all that want some; what a product code
/// takes is its look-ups.
constexpr double kMostOfFloats = 1;
constexpr double kMostOfCodes = 4;
constexpr double kMostOfProducts = 12;

} // namespace

bool scoresIvfByRows(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    const ListCoding coding = p.lists.coding;
    const double groups = double(p.lists.numVectors) / kIvfGroup;
    const double most = coding == ListCoding::Float32 ? kMostOfFloats
            : coding == ListCoding::Product           ? kMostOfProducts
                                                      : kMostOfCodes;
    return choosesIvf(plan, p) && hasIvfFewEstimates(coding) &&
            plan.rowsAtATime <= kMostRows &&
            double(plan.rowsAtATime) * p.k <= most * groups;
}

int ivfFewEstimatesQueries(const IvfLists& lists, int64_t pairs) {
    if (!hasIvfFewEstimates(lists.coding) ||
        lists.d > IvfEstimateShape<true>::kDepth) {
        return 0;
    }
    const bool areFew = pairs <= kMostOfFew * lists.numLists;
    if (lists.coding == ListCoding::Product) {
        // A codebook lies in shared memory.
        return areFew && ivf_times::areDecodedInBlocks(lists) ? kIvfFewQueries
                                                              : 0;
    }
    const bool areMore = lists.layout == ListLayout::Interleaved &&
            pairs <= kMostOfMore * lists.numLists;
    return areFew ? kIvfFewQueries : areMore ? kIvfMoreQueries : 0;
}

} // namespace faiss_bits
