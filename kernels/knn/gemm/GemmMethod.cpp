/// Distances from matrix products and norms.

#include "kernels/knn/DistanceMethod.h"
#include "kernels/knn/filter/FilterPlan.h"
#include "kernels/knn/gemm/Product.h"

namespace faiss_bits {

namespace {

class GemmDistances : public TileDistances {
   public:
    GemmDistances(
            const FlatKnnProblem& problem,
            void* workspace,
            float* values,
            idx_t stride,
            cublasHandle_t handle)
            : product_(problem, handle, workspace, values, stride),
              values_(values),
              stride_(stride) {}

    void run(const DistanceTile& tile, cudaStream_t stream) const override {
        product_.run(
                tile.firstQuery,
                tile.numQueries,
                tile.firstVector,
                tile.gathered ? gatheredWidth(tile.numVectors)
                              : tile.numVectors,
                values_,
                stride_,
                stream,
                tile.gathered);
    }

   private:
    Product product_;
    float* values_;
    idx_t stride_;
};

bool takes(const FlatKnnProblem&) {
    return true;
}

ErrorBound bound(const FlatKnnProblem& p) {
    const double unit =
            p.dataType == DataType::Float32 ? kFloat32Unit : kTensorCoreUnit;
    ErrorBound bound;
    // L2: |x|^2, <q, x> and |q|^2, each with d roundings, and three to add
    // them; together no more than (|q| + |x|)^2.
    bound.ofNorms = errorOfRoundings(p.d + 8.0, unit);
    // Products and sums that underflow, even if to zero.
    bound.absolute = (p.d + 8.0) * 0x1p-124;
    bound.ofProducts = p.metric == Metric::InnerProduct;
    return bound;
}

std::unique_ptr<TileDistances> prepare(
        const FlatKnnProblem& problem,
        const MethodScratch& scratch,
        float* values,
        idx_t stride,
        cublasHandle_t handle) {
    return std::make_unique<GemmDistances>(
            problem, scratch.product, values, stride, handle);
}

} // namespace

const DistanceMethod kGemmMethod = {"gemm", takes, true, bound, prepare};

} // namespace faiss_bits
