#include "kernels/knn/fused/Overfull.h"

#include <algorithm>
#include <cmath>

namespace faiss_bits {

namespace {

double membersBeyond(double most) {
    return 1.25 * most + 5 * std::sqrt(most) + 4;
}

} // namespace

uint32_t overfullMembers(const SampleLimitParams& limits) {
    constexpr int kOfSecond = kSecondShare * int(kMostSecondEntries);
    const int list = limits.search.numCandidates;
    const int room =
            limits.search.n < kLeastOfSecond ? list : std::max(list, kOfSecond);
    const double most =
            room * (double(limits.samples) / double(limits.search.n));
    return uint32_t(std::ceil(membersBeyond(most)));
}

uint32_t overfullStrips(const FusedPlan& plan, idx_t numVectors) {
    const double share = double(plan.secondSamples) / double(numVectors);
    const double members = membersBeyond(plan.capacity * share);
    const double strips = plan.secondStrips.perRow;
    return uint32_t(std::ceil(strips * -std::expm1(-members / strips)));
}

} // namespace faiss_bits
