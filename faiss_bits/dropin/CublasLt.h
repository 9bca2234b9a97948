/// The cuBLASLt that FAISS has loaded, whatever its version.
///
/// kernels/knn/gemm calls a few functions of cuBLASLt. This library defines
/// them (CublasLt.cpp), hidden, and hands each call on: to be linked with one
/// version would load a second one beside FAISS's. Every structure that is
/// passed is either filled by that version, which is told how large it is, or
/// of the same layout from CUDA 12 on.
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
