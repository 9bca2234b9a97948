/// The names of a cuBLASLt, and its version. FAKE_INCOMPLETE: without one of
/// them.

#include <cstddef>

extern "C" {

size_t cublasLtGetVersion() {
    return FAKE_VERSION;
}

void cublasLtCreate() {}
#ifndef FAKE_INCOMPLETE
void cublasLtMatmul() {}
#endif
void cublasLtMatmulAlgoCheck() {}
void cublasLtMatmulAlgoConfigGetAttribute() {}
void cublasLtMatmulAlgoConfigSetAttribute() {}
void cublasLtMatmulAlgoGetHeuristic() {}
void cublasLtMatmulDescInit_internal() {}
void cublasLtMatmulDescSetAttribute() {}
void cublasLtMatmulPreferenceInit_internal() {}
void cublasLtMatmulPreferenceSetAttribute() {}
void cublasLtMatrixLayoutInit_internal() {}
}
