/// The cuBLASLt that FAISS has loaded, whatever its version: products of this
/// library go to it (kernels/common/CublasLtCalls.h), as to be linked with one
/// version would load a second one beside FAISS's.
#pragma once

#include <cublas_v2.h>

#include "faiss_bits/dropin/LoadedFaiss.h"

namespace faiss_bits::dropin {

/// A handle for the current device, made once in the life of the process and
/// safe from several threads; runFlatKnn takes it for one of cuBLAS. Without
/// an original: of what the program has loaded. Throws Error if there is no
/// cuBLASLt (FAISS may have it linked in), or one of before CUDA 12.
cublasHandle_t cublasLtOf(const Original& original);

} // namespace faiss_bits::dropin
