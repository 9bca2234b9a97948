#pragma once

#include <faiss/Index.h>

#include "faiss_bits/common/FaissCompat.h"

/// What the files of IndexFusedIVFFlat share. Not part of the API.
namespace faiss_bits::detail {

/// What a search is asked for.
struct FusedIvfSearch {
    idx_t n = 0, k = 0, nprobe = 0;
    idx_t mostCodes = 0; ///< 0: all
    const faiss::IDSelector* sel = nullptr;
    const faiss::SearchParameters* quantizerParams = nullptr;
};

} // namespace faiss_bits::detail
