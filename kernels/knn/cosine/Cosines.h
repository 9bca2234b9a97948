#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/pairwise/PairwiseParams.h"

namespace faiss_bits {

/// Makes cosines of products, in place: params.distances[q][v] times the
/// inverse norms of query and vector (RowFacts::InverseNorm). A pair of which
/// one row is not fit gets its canonical cosine. params.power is not read.
void runCosines(const PairwiseParams& params, cudaStream_t stream);

} // namespace faiss_bits
