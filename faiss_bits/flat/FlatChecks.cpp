#include "faiss_bits/flat/FlatChecks.h"

#include <typeinfo>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/flat/SearchWithin.h"
#include "faiss_bits/range/RangeCall.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Null, or of a class of which nothing is ignored.
void requireParameters(const faiss::SearchParameters* params) {
    if (!params) {
        return;
    }
    FAISS_THROW_IF_NOT_FMT(
            typeid(*params) == typeid(faiss::SearchParameters) ||
                    typeid(*params) == typeid(SearchParametersBitsFlat) ||
                    typeid(*params) == typeid(SearchWithin),
            "params is a %s: a flat index would have to ignore what it asks "
            "for; only a plain SearchParameters and a SearchParametersBitsFlat "
            "are taken",
            faiss::demangle_cpp_symbol(typeid(*params).name()).c_str());
}

} // namespace

void requireFlatSearch(
        idx_t n,
        idx_t k,
        const faiss::SearchParameters* params) {
    requireCount(n, "n");
    requireWithin(k, 1, kMaxK, "k");
    requireParameters(params);
    const idx_t most = maxResultsOf(params);
    FAISS_THROW_IF_NOT_FMT(
            most == 0,
            "params.max_results = %lld is for range_search",
            (long long)most);
}

void requireFlatRange(
        idx_t n,
        const float* x,
        float radius,
        const faiss::SearchParameters* params) {
    requireCount(n, "n");
    requireParameters(params);
    requireRange(radius, maxResultsOf(params));
    if (n > 0) {
        requireNotNull(x, "x");
    }
}

} // namespace faiss_bits::gpu::detail
