#pragma once

#include "kernels/cpu/Problem.h"
#include "kernels/cpu/Setup.h"

/// When a certified search computes canonical distances of all pairs, and needs
/// no candidates: its queries are all certified, and none of its distances
/// counts as rescored.
namespace faiss_bits::cpu {

/// How it computes them.
enum class AllPairs : uint8_t {
    None,    ///< it does not: there are candidates
    Doubles, ///< products in float64: CanonicalTiles-inl.h
    Bytes,   ///< matrix instructions on bytes: Bytes.h
    Rows,    ///< row by row, nothing packed: PairsByRows.h
};

/// The way that is less work than candidates of `k` results are, or that is
/// forced. Throws Error where it is forced to one and cannot. `shapeOnly`:
/// without looking at a sample of the data, for plans.
template <class T>
AllPairs allPairsFor(
        const Setup<T>& setup,
        const Problem<T>& problem,
        idx_t k,
        bool shapeOnly);

/// From here on the sweeps of a search are of all pairs that way.
void sweepAllPairs(Setup<float>& setup, AllPairs way);

} // namespace faiss_bits::cpu
