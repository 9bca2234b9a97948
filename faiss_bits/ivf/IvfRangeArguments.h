#pragma once

#include <faiss/IndexIVF.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissCompat.h"

/// Not part of the API.
namespace faiss_bits::detail {

/// Throws FaissException for parameters by which FAISS's range search may end
/// before all nprobe lists are searched, which no search of ours does.
inline void requireAllLists(const faiss::SearchParameters* params) {
    const auto* ivf = dynamic_cast<const faiss::SearchParametersIVF*>(params);
    const size_t most = ivf ? mostEmptyLists(*ivf) : 0;
    FAISS_THROW_IF_NOT_FMT(
            most == 0,
            "params->max_empty_result_buckets = %zu: only 0 is supported, all "
            "nprobe lists",
            most);
}

} // namespace faiss_bits::detail
