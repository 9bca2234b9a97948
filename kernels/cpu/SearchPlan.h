#pragma once

#include "kernels/cpu/Plan.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// The plan of a search: variant, blocks, batch, and how the threads share it.
/// k = 0 plans a range search. Nothing is measured unless `predict`, or the
/// choice among the packed variants needs it.
template <class T>
Plan planSearch(
        const Setup<T>& setup,
        const Problem<T>& problem,
        idx_t k,
        bool predict);

} // namespace faiss_bits::cpu
