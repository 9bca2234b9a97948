/// The functions of cuBLASLt that products call, in a table: which cuBLASLt
/// that is differs between builds, and none of them may load a second one
/// beside that of its handles.
///
///   LinkedCublasLt.cpp          the one that this library is linked with
///   LoadedCublasLt.cpp          that of the process, beside a FAISS with
///                               another CUDA (cmake/CudaLibraries.cmake)
///   faiss_bits/dropin/CublasLt  the one of the FAISS whose calls it replaces
#pragma once

#include <cublasLt.h>

#include <string>
#include <type_traits>

namespace faiss_bits {

struct CublasLtCalls {
    decltype(&::cublasLtGetVersion) version = nullptr;
    decltype(&::cublasLtCreate) create = nullptr;
    decltype(&::cublasLtMatmul) matmul = nullptr;
    decltype(&::cublasLtMatmulAlgoCheck) algoCheck = nullptr;
    decltype(&::cublasLtMatmulAlgoConfigGetAttribute) algoGet = nullptr;
    decltype(&::cublasLtMatmulAlgoConfigSetAttribute) algoSet = nullptr;
    decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
    decltype(&::cublasLtMatmulDescInit_internal) descInit = nullptr;
    decltype(&::cublasLtMatmulDescSetAttribute) descSet = nullptr;
    decltype(&::cublasLtMatmulPreferenceInit_internal) preferenceInit = nullptr;
    decltype(&::cublasLtMatmulPreferenceSetAttribute) preferenceSet = nullptr;
    decltype(&::cublasLtMatrixLayoutInit_internal) layoutInit = nullptr;
};

/// Those of this build. Safe from several threads; the same ones every time.
/// Throws Error where there is no cuBLASLt, or none that serves.
const CublasLtCalls& cublasLtCalls();

/// Every function by `find(name)`, which gives its address or nullptr. Returns
/// the name of the first that is not there, or an empty string.
template <typename Find>
std::string fillCublasLtCalls(CublasLtCalls& calls, const Find& find) {
    std::string missing;
    const auto take = [&](auto& function, const char* name) {
        using Function = std::remove_reference_t<decltype(function)>;
        function = reinterpret_cast<Function>(find(name));
        if (!function && missing.empty()) {
            missing = name;
        }
    };
    take(calls.version, "cublasLtGetVersion");
    take(calls.create, "cublasLtCreate");
    take(calls.matmul, "cublasLtMatmul");
    take(calls.algoCheck, "cublasLtMatmulAlgoCheck");
    take(calls.algoGet, "cublasLtMatmulAlgoConfigGetAttribute");
    take(calls.algoSet, "cublasLtMatmulAlgoConfigSetAttribute");
    take(calls.heuristic, "cublasLtMatmulAlgoGetHeuristic");
    take(calls.descInit, "cublasLtMatmulDescInit_internal");
    take(calls.descSet, "cublasLtMatmulDescSetAttribute");
    take(calls.preferenceInit, "cublasLtMatmulPreferenceInit_internal");
    take(calls.preferenceSet, "cublasLtMatmulPreferenceSetAttribute");
    take(calls.layoutInit, "cublasLtMatrixLayoutInit_internal");
    return missing;
}

/// Of a cuBLASLt that is of another version than these headers: the structures
/// that are passed are filled by it, which is told how large they are, or have
/// been of the same layout since this version (CUDA 12.0).
constexpr size_t kLeastCublasLtVersion = 120000;
static_assert(sizeof(cublasLtMatmulDescOpaque_t) == 32 * 8);
static_assert(sizeof(cublasLtMatrixLayoutOpaque_t) == 8 * 8);
static_assert(sizeof(cublasLtMatmulPreferenceOpaque_t) == 8 * 8);
static_assert(sizeof(cublasLtMatmulAlgo_t) == 8 * 8);

} // namespace faiss_bits
