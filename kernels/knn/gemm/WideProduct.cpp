#include "kernels/knn/gemm/WideProduct.h"

#include <map>
#include <mutex>
#include <tuple>

#include "kernels/common/CublasLtCalls.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits {

namespace {

/// One product as cuBLAS wants it: its [vectors, queries], column-major, is our
/// [queries, vectors].
struct Call {
    cublasLtMatmulDescOpaque_t operation;
    cublasLtMatrixLayoutOpaque_t vectors;
    cublasLtMatrixLayoutOpaque_t queries;
    cublasLtMatrixLayoutOpaque_t out;

    explicit Call(const WideProduct& p) {
        const CublasLtCalls& lt = cublasLtCalls();
        BITS_CUBLAS_CHECK(lt.descInit(
                &operation,
                sizeof(operation),
                CUBLAS_COMPUTE_64F_PEDANTIC,
                CUDA_R_64F));
        const cublasOperation_t transposed = CUBLAS_OP_T;
        BITS_CUBLAS_CHECK(lt.descSet(
                &operation,
                CUBLASLT_MATMUL_DESC_TRANSA,
                &transposed,
                sizeof(transposed)));
        const auto init = [&](auto& layout, idx_t rows, idx_t cols, idx_t ld) {
            BITS_CUBLAS_CHECK(lt.layoutInit(
                    &layout,
                    sizeof(layout),
                    CUDA_R_64F,
                    uint64_t(rows),
                    uint64_t(cols),
                    ld));
        };
        init(vectors, p.d, p.numVectors, p.stride);
        init(queries, p.d, p.numQueries, p.stride);
        init(out, p.numVectors, p.numQueries, p.outStride);
    }
};

cublasLtMatmulAlgo_t choose(const WideProduct& p, cublasLtHandle_t handle) {
    const CublasLtCalls& lt = cublasLtCalls();
    cublasLtMatmulPreferenceOpaque_t preference;
    BITS_CUBLAS_CHECK(lt.preferenceInit(&preference, sizeof(preference)));
    const uint64_t bytes = 0; // of a workspace
    BITS_CUBLAS_CHECK(lt.preferenceSet(
            &preference,
            CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
            &bytes,
            sizeof(bytes)));
    Call call(p);
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    BITS_CUBLAS_CHECK(lt.heuristic(
            handle,
            &call.operation,
            &call.vectors,
            &call.queries,
            &call.out,
            &call.out,
            &preference,
            1,
            &result,
            &found));
    if (found == 0 || result.state != CUBLAS_STATUS_SUCCESS) {
        throw Error(formatMessage(
                "cuBLAS has no algorithm for float64 products of %lld vectors "
                "and %lld queries of %d components",
                (long long)p.numVectors,
                (long long)p.numQueries,
                p.d));
    }
    return result.algo;
}

cublasLtMatmulAlgo_t algorithmFor(
        const WideProduct& p,
        cublasLtHandle_t handle) {
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    using Kind = std::tuple<int, idx_t, idx_t, int, idx_t, idx_t>;
    static std::mutex mutex;
    static std::map<Kind, cublasLtMatmulAlgo_t> known;
    const Kind kind(
            device, p.numVectors, p.numQueries, p.d, p.stride, p.outStride);
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = known.find(kind);
    if (found != known.end()) {
        return found->second;
    }
    // A program that searches ever new shapes must not fill the memory.
    constexpr size_t kMostKnown = 4096;
    if (known.size() >= kMostKnown) {
        known.clear();
    }
    return known[kind] = choose(p, handle);
}

} // namespace

void runWideProduct(
        const WideProduct& p,
        cublasHandle_t handle,
        cudaStream_t stream) {
    // A cuBLAS handle may stand for one of cuBLASLt (its manual).
    const auto lt = reinterpret_cast<cublasLtHandle_t>(handle);
    const cublasLtMatmulAlgo_t algorithm = algorithmFor(p, lt);
    Call call(p);
    const double alpha = 1;
    const double beta = 0;
    BITS_CUBLAS_CHECK(cublasLtCalls().matmul(
            lt,
            &call.operation,
            &alpha,
            p.vectors,
            &call.vectors,
            p.queries,
            &call.queries,
            &beta,
            p.out,
            &call.out,
            p.out,
            &call.out,
            &algorithm,
            nullptr,
            0,
            stream));
}

} // namespace faiss_bits
