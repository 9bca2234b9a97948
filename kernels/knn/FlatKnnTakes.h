#pragma once

#include "kernels/knn/FlatKnn.h"

/// Which searches planFlatKnn gives to a later way than the first that has a
/// plan for them.
namespace faiss_bits {

/// Whether an image of the vectors and a sample, made for this search alone,
/// would take longer than a matrix of distances and a selection.
bool isFewWithoutImage(const FlatKnnProblem& problem);

/// Cosines of some queries among so many long vectors that limits from a sample
/// take less time than the nearest of every part.
bool isLongCosine(const FlatKnnProblem& problem);

} // namespace faiss_bits
