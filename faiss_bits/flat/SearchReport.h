#pragma once

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/PagePlan.h"
#include "faiss_bits/flat/GpuSearchPlan.h"
#include "faiss_bits/flat/SearchFilter.h"
#include "faiss_bits/flat/VectorFacts.h"
#include "kernels/common/DeviceSpeed.h"
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
        const DeviceSpeed& speed);

/// What a search of an index would do, as it takes memory in its order.
struct ExpectedSearch {
    /// Of all queries; pointers that the search brings are not set.
    FlatKnnProblem problem;
    PageLimits limits;
    FilterShape filter;
    /// Of the index. nullptr: they cannot be used now.
    const VectorFacts* facts = nullptr;
    bool hostArrays = true;
};

GpuSearchPlan planSearch(
        const GpuContext& context,
        const ExpectedSearch& search,
        const DeviceSpeed& speed);

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
