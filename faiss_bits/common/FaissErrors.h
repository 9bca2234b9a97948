#pragma once

#include <cmath>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>
#include <faiss/impl/FaissException.h>

#include "faiss_bits/common/FaissCompat.h"
#include "kernels/common/Error.h"

/// What turns bad calls into FAISS's exceptions. Not part of the API.
namespace faiss_bits::detail {

/// Runs f. An Error of the kernels leaves as a FaissException, same text.
template <class F>
auto withFaissErrors(F&& f) {
    try {
        return f();
    } catch (const Error& error) {
        throw faiss::FaissException(error.what());
    }
}

/// Throws FaissException "<name> is a null pointer".
inline void requireNotNull(const void* pointer, const char* name) {
    FAISS_THROW_IF_NOT_FMT(pointer, "%s is a null pointer", name);
}

inline void requireCount(idx_t n, const char* name) {
    FAISS_THROW_IF_NOT_FMT(n >= 0, "%s = %lld is negative", name, (long long)n);
}

inline void requireKey(idx_t key, idx_t ntotal) {
    FAISS_THROW_IF_NOT_FMT(
            0 <= key && key < ntotal,
            "key = %lld is outside 0..%lld",
            (long long)key,
            (long long)ntotal - 1);
}

/// n vectors from i0 on are there, or n is 0.
inline void requireRun(
        idx_t i0,
        idx_t n,
        idx_t ntotal,
        const char* nameOfN = "n") {
    requireCount(n, nameOfN);
    if (n == 0) {
        return;
    }
    FAISS_THROW_IF_NOT_FMT(
            0 <= i0 && i0 < ntotal,
            "i0 = %lld is outside 0..%lld",
            (long long)i0,
            (long long)ntotal - 1);
    FAISS_THROW_IF_NOT_FMT(
            n <= ntotal - i0,
            "%s = %lld: there are only %lld vectors from i0 = %lld on",
            nameOfN,
            (long long)n,
            (long long)(ntotal - i0),
            (long long)i0);
}

/// Every id in 0..ntotal - 1, and -1 where it means "none".
inline void requireIds(
        idx_t n,
        const idx_t* ids,
        idx_t ntotal,
        const char* name,
        bool noneAllowed) {
    for (idx_t i = 0; i < n; ++i) {
        FAISS_THROW_IF_NOT_FMT(
                (0 <= ids[i] && ids[i] < ntotal) ||
                        (noneAllowed && ids[i] == -1),
                "%s[%lld] = %lld is outside 0..%lld",
                name,
                (long long)i,
                (long long)ids[i],
                (long long)ntotal - 1);
    }
}

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
