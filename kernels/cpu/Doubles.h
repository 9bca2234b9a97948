#pragma once

#include "kernels/cpu/Problem.h"
#include "kernels/cpu/Setup.h"

/// When a certified search computes canonical distances of all pairs by float64
/// products (CanonicalTiles-inl.h), and needs no candidates: its queries are
/// all certified, and none of its distances counts as rescored.
namespace faiss_bits::cpu {

/// True if it does: where that is less work than candidates of `k` results are,
/// and than bytes (Bytes.h), if these can be used; or because it is forced to.
/// Throws Error where it is forced to and cannot.
template <class T>
bool isForDoubles(const Setup<T>& setup, const Problem<T>& problem, idx_t k);

/// From here on the sweeps of a search are of all pairs by float64.
void sweepByDoubles(Setup<float>& setup);

} // namespace faiss_bits::cpu
