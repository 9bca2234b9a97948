#pragma once

#include "kernels/cpu/Knn.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// The k nearest neighbours of a problem that was checked, by canonical
/// distances: docs/bounds_cpu.md.
template <class T>
void runCertified(const KnnProblem<T>& problem, const Setup<T>& setup);

/// The plan of the sweep that finds the candidates of a certified search, k and
/// some more. The variant is that of k, as some more are no reason for one that
/// is better for more of them, but no heap where buffers are less work.
template <class T>
Plan planCandidates(
        const Setup<T>& setup,
        const Problem<T>& problem,
        idx_t k,
        idx_t candidates,
        bool predict);

} // namespace faiss_bits::cpu
