/// Distances from matrix products and norms.

#include "kernels/knn/DistanceMethod.h"
#include "kernels/knn/gemm/Product.h"

namespace faiss_bits {

namespace {

class GemmDistances : public TileDistances {
   public:
    GemmDistances(
            const FlatKnnProblem& problem,
            float* values,
            idx_t stride,
            cublasHandle_t handle)
            : product_(problem, handle, values, stride),
              values_(values),
              stride_(stride) {}

    void run(const DistanceTile& tile, cudaStream_t stream) const override {
        product_.run(
                tile.firstQuery,
                tile.numQueries,
                tile.firstVector,
                tile.numVectors,
                values_,
                stride_,
                stream);
    }

   private:
    Product product_;
    float* values_;
    idx_t stride_;
};

bool takes(const FlatKnnProblem&) {
    return true;
}

std::unique_ptr<TileDistances> prepare(
        const FlatKnnProblem& problem,
        const RowFactsOf&,
        float* values,
        idx_t stride,
        cublasHandle_t handle) {
    return std::make_unique<GemmDistances>(problem, values, stride, handle);
}

} // namespace

const DistanceMethod kGemmMethod = {"gemm", takes, true, prepare};

} // namespace faiss_bits
