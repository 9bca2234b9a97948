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
    // To copy a vector is to read it three times.
    const idx_t share = batchOf(p) > kFewQueries ? 2 : 4;
    return hasShortList(p, share) && enoughVectors(p, p.numAllowed);
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
