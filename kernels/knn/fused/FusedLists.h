#pragma once

#include "kernels/knn/fused/FusedKnn.h"

/// How the lists of a search by strips that warps finish are scored.
namespace faiss_bits {

/// Whether another kernel does it before, from a copy of the vectors
/// (ScoreSlots.h).
bool scoresBySlots(const FusedPlan& plan, const FlatKnnProblem& problem);

/// Whether the scan for these sets bits: so many vectors pass that a word of 32
/// has some, and to append them would cost it more.
bool passesToBits(const FusedPlan& plan, const FlatKnnProblem& problem);

/// Words of a query's bits.
uint32_t wordsOf(const FlatKnnProblem& problem);

} // namespace faiss_bits
