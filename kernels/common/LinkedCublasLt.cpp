#include "kernels/common/CublasLtCalls.h"

namespace faiss_bits {

const CublasLtCalls& cublasLtCalls() {
    static const CublasLtCalls calls = {
            ::cublasLtGetVersion,
            ::cublasLtCreate,
            ::cublasLtMatmul,
            ::cublasLtMatmulAlgoCheck,
            ::cublasLtMatmulAlgoConfigGetAttribute,
            ::cublasLtMatmulAlgoConfigSetAttribute,
            ::cublasLtMatmulAlgoGetHeuristic,
            ::cublasLtMatmulDescInit_internal,
            ::cublasLtMatmulDescSetAttribute,
            ::cublasLtMatmulPreferenceInit_internal,
            ::cublasLtMatmulPreferenceSetAttribute,
            ::cublasLtMatrixLayoutInit_internal};
    return calls;
}

} // namespace faiss_bits
