#pragma once

#include "kernels/cpu/Range.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// All vectors with a canonical key under a limit, for a problem that was
/// checked and has queries and vectors: docs/bounds_cpu.md.
template <class T>
RangeResult<T> runCertifiedRange(
        const Problem<T>& problem,
        const Setup<T>& setup,
        T limit);

} // namespace faiss_bits::cpu
