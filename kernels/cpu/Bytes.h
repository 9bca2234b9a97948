#pragma once

#include "kernels/cpu/Problem.h"
#include "kernels/cpu/Setup.h"

/// When a certified search computes canonical distances of all pairs by matrix
/// instructions on bytes (ByteTypes.h), and needs no candidates: its queries
/// are all certified, and none of its distances counts as rescored.
namespace faiss_bits::cpu {

/// True if it does: where that is less work than candidates of `k` results are,
/// and a sample of the pairs is seldom in doubt; or because it is forced to.
/// Throws Error where it is forced to and cannot. `shapeOnly`: without looking
/// at a sample, for plans.
template <class T>
bool isForBytes(
        const Setup<T>& setup,
        const Problem<T>& problem,
        idx_t k,
        bool shapeOnly);

/// From here on the sweeps of a search are of all pairs by bytes.
void sweepByBytes(Setup<float>& setup);

} // namespace faiss_bits::cpu
