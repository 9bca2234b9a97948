#include "kernels/knn/gemm/Product.h"

#include "kernels/common/CublasLtCalls.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/knn/gemm/ProductAlgorithm.h"

namespace faiss_bits {

namespace {

/// Vectors or queries `first` and on, by type and layout.
const void* from(
        const void* data,
        const FlatKnnProblem& p,
        bool rowMajor,
        idx_t first) {
    return static_cast<const uint8_t*>(data) +
            size_t(first) * (rowMajor ? p.d : 1) * sizeOf(p.dataType);
}

/// The first place from here on where cuBLAS's workspace may begin.
void* aligned(void* workspace) {
    const auto at = reinterpret_cast<uintptr_t>(workspace);
    constexpr uintptr_t kStep = Product::kWorkspace;
    return reinterpret_cast<void*>((at + kStep - 1) / kStep * kStep);
}

} // namespace

Product::Product(
        const FlatKnnProblem& problem,
        cublasHandle_t handle,
        void* workspace,
        const float* out,
        idx_t outStride)
        : problem_(problem),
          workspace_(aligned(workspace)),
          // A cuBLAS handle may stand for one of cuBLASLt (its manual).
          handle_(reinterpret_cast<cublasLtHandle_t>(handle)),
          algorithm_(productAlgorithm(
                  handle_,
                  productKindOf(
                          problem,
                          alignmentOf(out, outStride * sizeof(float))))) {}

void Product::run(
        idx_t firstQuery,
        idx_t numQueries,
        idx_t firstVector,
        idx_t numVectors,
        float* out,
        idx_t outStride,
        cudaStream_t stream,
        const void* gathered) const {
    const FlatKnnProblem& p = problem_;
    ProductKind kind;
    kind.type = p.dataType;
    kind.vectorsRowMajor = p.vectorsRowMajor;
    kind.queriesRowMajor = p.queriesRowMajor;
    kind.d = p.d;
    kind.vectorStride = p.vectorsRowMajor ? p.d : p.numVectors;
    ProductCall call(
            kind,
            numVectors,
            numQueries,
            p.queriesRowMajor ? p.d : p.numQueries,
            outStride);
    const bool negated = p.metric == Metric::InnerProduct && p.allowedBits;
    const float alpha = p.metric == Metric::L2 ? -2.0f : negated ? -1.0f : 1.0f;
    const float beta = 0.0f;
    BITS_CUBLAS_CHECK(cublasLtCalls().matmul(
            handle_,
            &call.operation,
            &alpha,
            gathered ? gathered
                     : from(p.vectors, p, p.vectorsRowMajor, firstVector),
            &call.vectors,
            from(p.queries, p, p.queriesRowMajor, firstQuery),
            &call.queries,
            &beta,
            out,
            &call.out,
            out,
            &call.out,
            &algorithm_,
            workspace_,
            workspace_ ? kWorkspace : 0,
            stream));
}

} // namespace faiss_bits
