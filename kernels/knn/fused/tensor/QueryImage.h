#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

/// Whether runQueryImage() makes such an image: of queries in float32 of 33 to
/// 128 components, by L2, of which nothing else is wanted.
bool canQueryImage(const TensorImageProblem& problem);

/// runTensorImage() of these, in less time: a row is a chain of latencies, and
/// a warp has eight at a time. Sums of squares are in another order.
void runQueryImage(const TensorImageProblem& problem, cudaStream_t stream);

} // namespace faiss_bits
