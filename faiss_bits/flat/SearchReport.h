#pragma once

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/PagePlan.h"
#include "faiss_bits/flat/GpuSearchPlan.h"
#include "faiss_bits/flat/VectorFacts.h"
#include "kernels/knn/FlatKnnPlan.h"

/// What searches say of their plans: the one that runs, in the log, and the one
/// that would run, to who asks for it. Not part of the API.
namespace faiss_bits::gpu::detail {

/// Of the plan of the first page of a call with `queries` queries.
GpuSearchPlan reportOf(
        const FlatKnnPlan& plan,
        const FlatKnnProblem& page,
        const PagePlan& pages,
        idx_t queries,
        ImageUse image,
        int device);

/// Prints that to the log, once a shape (PlanLog.h). `what` names the call.
void logSearch(
        const char* what,
        const FlatKnnPlan& plan,
        const FlatKnnProblem& page,
        const PagePlan& pages,
        idx_t queries,
        ImageUse image,
        int device);

} // namespace faiss_bits::gpu::detail
