#include "kernels/knn/FlatKnnTakes.h"

#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

bool isFewWithoutImage(const FlatKnnProblem& p) {
    constexpr idx_t kFew = 64;
    constexpr idx_t kMostVectors = 1 << 20; // more were not measured
    return p.mode == SearchMode::Certified && !p.searchImage &&
            !p.allowedBits && batchOf(p) <= kFew &&
            p.numVectors <= kMostVectors && p.dataType == DataType::Float32 &&
            fusedMethodFor(p) == &kTensorFusedMethod;
}

bool isLongCosine(const FlatKnnProblem& p) {
    constexpr idx_t kSome = 512;
    constexpr idx_t kFewVectors = 16384;
    constexpr int kLong = 512;
    return p.metric == Metric::Cosine && batchOf(p) <= kSome &&
            p.numVectors > kFewVectors && p.d >= kLong;
}

} // namespace faiss_bits
