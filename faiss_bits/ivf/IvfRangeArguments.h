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
    FAISS_THROW_IF_NOT_MSG(
            !ivf || !endsAtEmptyLists(*ivf),
            "params->max_empty_result_buckets is set: only 0 is supported, "
            "all nprobe lists");
}

} // namespace faiss_bits::detail
