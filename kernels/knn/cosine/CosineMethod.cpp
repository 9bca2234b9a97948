/// Cosines: products of another method, and a pass that divides by the norms.

#include "kernels/knn/DistanceMethod.h"
#include "kernels/knn/cosine/Cosines.h"
#include "kernels/knn/pairwise/PairwiseRows.h"

namespace faiss_bits {

namespace {

/// The one whose products they are: of the caller's whole batch.
const DistanceMethod& productsOf(const FlatKnnProblem& problem) {
    return kFewQueriesMethod.takes(problem) ? kFewQueriesMethod : kGemmMethod;
}

class CosineDistances : public TileDistances {
   public:
    CosineDistances(
            const FlatKnnProblem& problem,
            const MethodScratch& scratch,
            float* values,
            idx_t stride,
            cublasHandle_t handle)
            : problem_(problem),
              facts_(scratch.facts),
              values_(values),
              stride_(stride),
              products_(productsOf(problem).prepare(
                      problem,
                      scratch,
                      values,
                      stride,
                      handle)) {}

    void run(const DistanceTile& tile, cudaStream_t stream) const override {
        products_->run(tile, stream);
        runCosines(
                pairwiseParams(problem_, facts_, tile, values_, stride_),
                stream);
    }

   private:
    const FlatKnnProblem& problem_;
    RowFactsOf facts_;
    float* values_;
    idx_t stride_;
    std::unique_ptr<TileDistances> products_;
};

bool takes(const FlatKnnProblem& p) {
    return p.metric == Metric::Cosine;
}

ErrorBound bound(const FlatKnnProblem& p) {
    return errorBound(p.metric, p.metricArg, p.d);
}

std::unique_ptr<TileDistances> prepare(
        const FlatKnnProblem& problem,
        const MethodScratch& scratch,
        float* values,
        idx_t stride,
        cublasHandle_t handle) {
    return std::make_unique<CosineDistances>(
            problem, scratch, values, stride, handle);
}

} // namespace

const DistanceMethod kCosineMethod = {"cosine", takes, false, bound, prepare};

} // namespace faiss_bits
