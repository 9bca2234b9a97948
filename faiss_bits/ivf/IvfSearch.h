#pragma once

#include <faiss/Index.h>
#include <faiss/impl/IDSelector.h>

#include "kernels/common/Types.h"

namespace faiss_bits::gpu::detail {

class FilteredLists;

/// What a search of inverted lists is asked for. Not part of the API.
struct IvfSearch {
    idx_t n = 0; ///< of the whole call
    int k = 0;
    int nprobe = 0; ///< no more than there are lists
    const faiss::SearchParameters* quantizerParams = nullptr;
    const faiss::IDSelector* selector = nullptr;
    bool storePairs = false; ///< labels are list << 32 | place
    idx_t mostVectors = 0;   ///< IvfKnnProblem::mostVectors
    bool anyLists = false;   ///< a list may be named more than once
    const FilteredLists* lists = nullptr; ///< of the whole call
};

} // namespace faiss_bits::gpu::detail
