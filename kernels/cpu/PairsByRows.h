#pragma once

#include "kernels/cpu/Knn.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// A certified search as AllPairs::Rows: canonical distances of each query and
/// all vectors, row by row. Neither is packed, and there is no plan, so that it
/// is little work beside the distances.
void runByRows(const KnnProblem<float>& problem, const Setup<float>& setup);

} // namespace faiss_bits::cpu
