#include "kernels/knn/fused/FusedFilter.h"

#include "kernels/knn/filter/FilterPlan.h"
#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

bool hasShortList(const FlatKnnProblem& p, idx_t share) {
    return p.allowedIds && p.numAllowed <= p.numVectors / share;
}

bool leavesMost(const FlatKnnProblem& p, const FusedMethod& method) {
    const bool onTensorCores = &method == &kTensorFusedMethod;
    if (!p.allowedBits) {
        return false;
    }
    if (batchOf(p) == 1) {
        // An image is half of the bytes, of all vectors.
        return !onTensorCores || hasShortList(p, 4);
    }
    return hasShortList(p, 8) && !(onTensorCores && scansList(p)) &&
            listPays(p, distanceMethodFor(p), p.numQueries);
}

bool scansList(const FlatKnnProblem& p) {
    if (!p.allowedIds || !enoughVectors(p, p.numAllowed)) {
        return false;
    }
    // To copy a vector takes as long as to scan it for so many queries, in 8
    // bits as in 16, by arithmetic: two of its size are moved.
    constexpr idx_t kQueriesOfCopy = 400;
    const idx_t others = p.numVectors - p.numAllowed;
    return hasShortList(p, 4) ||
            (batchOf(p) > kFewQueries &&
             p.numAllowed * kQueriesOfCopy <= others * p.numQueries);
}

FlatKnnProblem seenBy(const FusedPlan& plan, const FlatKnnProblem& problem) {
    FlatKnnProblem seen = problem;
    if (plan.leavesList) {
        seen.allowedIds = nullptr;
        seen.numAllowed = 0;
    }
    return seen;
}

} // namespace faiss_bits
