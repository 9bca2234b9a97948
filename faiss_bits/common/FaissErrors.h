#pragma once

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

/// 1 or more. Returns it, as below: these also check while the arguments of a
/// base class are made, whose constructor would end the process.
template <class T>
T requirePositive(T value, const char* name) {
    FAISS_THROW_IF_NOT_FMT(
            value >= 1,
            "%s = %lld, at least 1 is needed",
            name,
            (long long)value);
    return value;
}

/// first .. last
template <class T>
T requireWithin(T value, idx_t first, idx_t last, const char* name) {
    FAISS_THROW_IF_NOT_FMT(
            first <= idx_t(value) && idx_t(value) <= last,
            "%s = %lld is outside %lld..%lld",
            name,
            (long long)value,
            (long long)first,
            (long long)last);
    return value;
}

inline void requireKey(idx_t key, idx_t ntotal) {
    requireWithin(key, 0, ntotal - 1, "key");
}

#if FAISS_BITS_FAISS_HAS_NUMERIC_TYPE
/// What add_ex and search_ex are given, which take one type alone.
inline const float* requireFloat32(
        const void* x,
        faiss::NumericType numericType) {
    FAISS_THROW_IF_NOT_FMT(
            numericType == faiss::NumericType::Float32,
            "numericType = %d is not supported: Float32 (%d) is",
            int(numericType),
            int(faiss::NumericType::Float32));
    return static_cast<const float*>(x);
}
#endif

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
    requireWithin(i0, 0, ntotal - 1, "i0");
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

} // namespace faiss_bits::detail
