#pragma once

#include "kernels/cpu/Knn.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// The k nearest neighbours of a problem that was checked, as the plan says.
/// What runKnn does once it has made both.
template <class T>
void runPlanned(
        const KnnProblem<T>& problem,
        const Setup<T>& setup,
        const Plan& plan);

} // namespace faiss_bits::cpu
