#pragma once

#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

/// runTensorImage() of vectors for scans by L2, in which one with an infinite
/// component, and no NaN, is infinitely far from every finite query: such
/// components are zeros, and the squared norm is infinity, so that it passes no
/// limit that is a number.
void runDistanceImage(const TensorImageProblem& problem, cudaStream_t stream);

} // namespace faiss_bits
