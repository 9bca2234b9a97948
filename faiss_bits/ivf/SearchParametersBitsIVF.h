#pragma once

#include <cstdint>

#include <faiss/IndexIVF.h>

namespace faiss_bits::gpu {

/// FAISS's parameters of a search of inverted lists, and a limit of a range
/// search.
///
/// nprobe, sel, quantizer_params, ...  as FAISS's: nprobe is 1 unless it is set
/// max_results  of a range search, of all its queries together: where more are
///            in range it throws, with their number. 0 (default): no limit.
///            A search for k neighbours refuses another value
///
/// A SearchParametersBitsFlat has such a limit too, and leaves nprobe to the
/// index.
struct SearchParametersBitsIVF : public faiss::SearchParametersIVF {
    SearchParametersBitsIVF() = default;

    /// FAISS's with a limit. What they point to is not copied.
    explicit SearchParametersBitsIVF(
            const faiss::SearchParametersIVF& given,
            int64_t maxResults = 0)
            : SearchParametersIVF(given), max_results(maxResults) {}

    int64_t max_results = 0; ///< of a range search; 0: no limit
};

} // namespace faiss_bits::gpu
