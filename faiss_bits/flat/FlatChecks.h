#pragma once

#include "faiss_bits/common/FaissCompat.h"

namespace faiss {
struct SearchParameters;
} // namespace faiss

/// Checks of a flat index's arguments on the GPU: FaissException that names the
/// argument and its value. Not part of the API.
namespace faiss_bits::gpu::detail {

/// Of a search, but for pointers.
void requireFlatSearch(idx_t n, idx_t k, const faiss::SearchParameters* params);

/// Of a range search.
void requireFlatRange(
        idx_t n,
        const float* x,
        float radius,
        const faiss::SearchParameters* params);

} // namespace faiss_bits::gpu::detail
