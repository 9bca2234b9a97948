#pragma once

#include "kernels/knn/fused/PassedLists.h"
#include "kernels/knn/pairwise/PairwiseParams.h"

namespace faiss_bits {

/// What the fused kernels of kernels/knn/fused/pairwise get by value.
struct FusedPairwiseParams {
    PairwiseParams pairs; // all but the matrix of distances
    PassedLists passed;   // of pairs.queries
    /// Bit i % 32 of word i / 32: vector i may pass; nullptr: all.
    const uint32_t* allowedBits = nullptr; // [(vectors.count + 31) / 32]
    int multiprocessors = 132;
};

} // namespace faiss_bits
