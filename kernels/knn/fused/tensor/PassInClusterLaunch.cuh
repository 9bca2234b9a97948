#pragma once

#include "kernels/knn/fused/tensor/PassAtOnceShape.cuh"
#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

/// runPassAtOnce() by clusters of blocks (PassInCluster.cuh): of up to
/// kMostVectorsAtOnce vectors. queries: their image; params: as of the kernel
/// of one block.
void launchPassInCluster(
        const at_once::Params& params,
        const TensorImage& queries,
        cudaStream_t stream);

} // namespace faiss_bits
