#pragma once

#include "kernels/cpu/FusedKnn.h"
#include "kernels/cpu/FusedSearch.h"

namespace faiss_bits {

/// The k nearest neighbours of a problem that was checked, as the plan says.
/// What runFusedKnn does once it has made both.
template <class T>
void runPlanned(
        const FusedKnnProblem<T>& problem,
        const FusedSetup<T>& setup,
        const FusedPlan& plan);

} // namespace faiss_bits
