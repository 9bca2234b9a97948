#pragma once

#include <cmath>

#include <faiss/impl/AuxIndexStructures.h>

#include "faiss_bits/common/FaissErrors.h"

/// Arguments of range searches; each throws FaissException that names what is
/// wrong. Not part of the API.
namespace faiss_bits::detail {

/// `result` is new, for n queries.
inline void requireRangeResult(
        const faiss::RangeSearchResult* result,
        idx_t n) {
    requireNotNull(result, "result");
    FAISS_THROW_IF_NOT_FMT(
            idx_t(result->nq) == n,
            "result->nq = %lld, but n = %lld",
            (long long)result->nq,
            (long long)n);
    requireNotNull(result->lims, "result->lims");
    FAISS_THROW_IF_NOT_MSG(
            !result->labels && !result->distances,
            "result holds the result of another search");
}

/// What a range search of n queries goes by and fills.
inline void requireRange(
        idx_t n,
        const float* x,
        float radius,
        const faiss::RangeSearchResult* result) {
    requireCount(n, "n");
    if (n > 0) {
        requireNotNull(x, "x");
    }
    FAISS_THROW_IF_NOT_MSG(!std::isnan(radius), "radius = NaN");
    requireRangeResult(result, n);
}

} // namespace faiss_bits::detail
