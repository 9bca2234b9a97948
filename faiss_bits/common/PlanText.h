#pragma once

#include <string>

#include "kernels/common/Error.h"
#include "kernels/common/SearchMode.h"
#include "kernels/common/Types.h"

/// Names and numbers as plans and the log print them. Not part of the API.
namespace faiss_bits::detail {

inline const char* textOf(Metric metric) {
    constexpr const char* kNames[] = {
            "L2",
            "inner product",
            "L1",
            "Linf",
            "Lp",
            "cosine",
            "Canberra",
            "Bray-Curtis",
            "Jensen-Shannon",
            "Jaccard"};
    return kNames[int(metric)];
}

inline const char* textOf(DataType type) {
    return type == DataType::Float32    ? "float32"
            : type == DataType::Float16 ? "float16"
                                        : "bfloat16";
}

inline const char* textOf(SearchMode mode) {
    return mode == SearchMode::Certified ? "certified"
            : mode == SearchMode::Plain  ? "plain"
                                         : "fast";
}

/// "search, 10 queries, n = 1000, d = 64, k = 5, L2, float32, certified".
inline std::string searchShapeText(
        const char* what,
        idx_t queries,
        idx_t n,
        int d,
        idx_t k,
        Metric metric,
        const char* type,
        SearchMode mode) {
    return formatMessage(
            "%s, %lld queries, n = %lld, d = %d, k = %lld, %s, %s, %s",
            what,
            (long long)queries,
            (long long)n,
            d,
            (long long)k,
            textOf(metric),
            type,
            textOf(mode));
}

} // namespace faiss_bits::detail
