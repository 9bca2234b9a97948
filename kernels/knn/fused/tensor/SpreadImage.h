#pragma once

#include "kernels/knn/fused/tensor/SpreadRows.h"
#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

/// runTensorImage of vectors, where row i of the image holds the vector
/// rows.vectorOf(i). problem.first = 0, and there are as many vectors as
/// rows.tiles are for, or more.
void runSpreadImage(
        const TensorImageProblem& problem,
        const SpreadRows& rows,
        cudaStream_t stream);

} // namespace faiss_bits
