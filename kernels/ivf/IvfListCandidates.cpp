#include "kernels/ivf/IvfListCandidates.h"

#include <algorithm>

#include "kernels/ivf/IvfChoice.h"

namespace faiss_bits {

namespace {

/// Of a list, on average, up to which this was faster than groups by
/// themselves, as in the few shapes that were timed
/// (docs/design/ivf_candidates.md, "Distances of candidates").
constexpr double kMostOfFloatList = 32;
constexpr double kMostOfCodedList = 96;
/// Candidates of 32 vectors, or more: of fewer the vectors that are none are
/// read in vain.
constexpr double kLeastOfGroup = 16;
/// In shared memory: of codes three blocks of a multiprocessor.
constexpr uint32_t kMostQueries = 112;

} // namespace

uint32_t ivfListQueries(const IvfParams& params, int candidates) {
    const IvfLists& lists = params.lists;
    if (!hasIvfListCandidates(lists.coding) || !params.isLower ||
        lists.layout != ListLayout::Interleaved || params.d > kIvfListDims ||
        params.nearProbes > kMostChoiceProbes) {
        return 0;
    }
    const double ofList = double(params.rows) * double(params.nearProbes) /
            double(lists.numLists);
    const double groups =
            double(lists.numVectors) / kIvfGroup + double(lists.numLists);
    if (ofList > (lists.coding == ListCoding::Float32 ? kMostOfFloatList
                                                      : kMostOfCodedList) ||
        double(params.rows) * candidates < kLeastOfGroup * groups) {
        return 0;
    }
    // Some lists have more than others.
    const double most = lists.coding == ListCoding::Float32 ? 1.25 : 1.5;
    return std::min(uint32_t(most * ofList) + 8, kMostQueries);
}

} // namespace faiss_bits
