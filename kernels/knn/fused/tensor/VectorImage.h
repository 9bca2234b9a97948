#pragma once

#include "kernels/knn/fused/tensor/SpreadRows.h"
#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

/// What images of vectors may have beside what runTensorImage() makes.
struct VectorImageOptions {
    /// Row i of the image holds the vector rows.vectorOf(i).
    SpreadRows rows;
    /// For scans by L2: a vector with an infinite component, and no NaN, is
    /// infinitely far from every finite query. Such components are zeros, and
    /// the squared norm is infinity, so that it passes no limit that is a
    /// number.
    bool dropsInfinite = false;
};

/// runTensorImage() of vectors with these options. With rows.tiles
/// problem.first is 0, and there are as many vectors as the tiles have rows, or
/// more; dropsInfinite: there are no inverseNorms.
void runVectorImage(
        const TensorImageProblem& problem,
        const VectorImageOptions& options,
        cudaStream_t stream);

} // namespace faiss_bits
