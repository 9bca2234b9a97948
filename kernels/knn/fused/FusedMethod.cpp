#include "kernels/knn/fused/FusedMethod.h"

namespace faiss_bits {

const FusedMethod* fusedMethodFor(const FlatKnnProblem& problem) {
    for (const FusedMethod* method :
         {&kTensorFusedMethod, &kPairwiseFusedMethod}) {
        if (method->takes(problem)) {
            return method;
        }
    }
    return nullptr;
}

} // namespace faiss_bits
