#pragma once

#include "kernels/knn/fused/FusedKnn.h"

/// What a filter means for searches without a matrix.
namespace faiss_bits {

/// A list of no more than one in `share` vectors.
bool hasShortList(const FlatKnnProblem& problem, idx_t share);

/// A filter that saves more than scans without a matrix do: one query reads
/// what is allowed alone, and a short list of ids is all that is searched.
bool leavesMost(const FlatKnnProblem& problem, const FusedMethod& method);

} // namespace faiss_bits
