#pragma once

#include "kernels/cpu/Knn.h"
#include "kernels/cpu/KnnSelection.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// Every query of a setup that has some, and vectors. With a certifier, k is
/// that of the candidates, and only results that are proved are written.
template <class T>
void runSweep(
        const Setup<T>& setup,
        const Plan& plan,
        idx_t k,
        const KnnOutput<T>& out,
        Certifier<T>* certifier);

/// The k nearest neighbours of a problem that was checked, as the plan says, by
/// plain distances. What runKnn does in that mode once it has made both.
template <class T>
void runPlanned(
        const KnnProblem<T>& problem,
        const Setup<T>& setup,
        const Plan& plan);

} // namespace faiss_bits::cpu
