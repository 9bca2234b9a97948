#pragma once

#include <faiss/Index.h>

#include "kernels/common/Types.h"

namespace faiss_bits::gpu::detail {

/// What a search of inverted lists is asked for. Not part of the API.
struct IvfSearch {
    idx_t n = 0; ///< of the whole call
    int k = 0;
    int nprobe = 0; ///< no more than there are lists
    const faiss::SearchParameters* quantizerParams = nullptr;
    bool storePairs = false; ///< labels are list << 32 | place
    idx_t mostVectors = 0;   ///< IvfKnnProblem::mostVectors
};

} // namespace faiss_bits::gpu::detail
