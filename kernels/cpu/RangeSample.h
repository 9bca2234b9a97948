#pragma once

#include "kernels/cpu/CanonicalTypes.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// Are so many keys under the limit that canonical distances of all pairs are
/// less work than candidates? By a sample of pairs; the answer changes the time
/// of a range search alone. For a problem with queries and vectors.
template <class T>
bool areManyInRange(
        const Setup<T>& setup,
        const CanonicalKernels<T>& kernels,
        T limit);

} // namespace faiss_bits::cpu
