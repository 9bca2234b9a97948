#pragma once

#include "kernels/cpu/Knn.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// The k nearest neighbours of a problem that was checked, by canonical
/// distances: docs/bounds_cpu.md.
template <class T>
void runCertified(const KnnProblem<T>& problem, const Setup<T>& setup);

} // namespace faiss_bits::cpu
