#include "kernels/knn/DistanceMethod.h"

namespace faiss_bits {

namespace {

const DistanceMethod* const kMethods[] = {&kFewQueriesMethod, &kGemmMethod};

} // namespace

const DistanceMethod& distanceMethodFor(const FlatKnnProblem& problem) {
    for (const DistanceMethod* one : kMethods) {
        if (one->takes(problem)) {
            return *one;
        }
    }
    return kGemmMethod;
}

} // namespace faiss_bits
