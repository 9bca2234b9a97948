#include "faiss_bits/dropin/CublasLt.h"

#include <cublasLt.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>

#include "faiss_bits/dropin/Device.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::dropin {

namespace {

// As in CUDA 12 and 13; tests/dropin has FAISS's cuBLASLt fill them.
static_assert(sizeof(cublasLtMatmulDescOpaque_t) == 32 * 8);
static_assert(sizeof(cublasLtMatrixLayoutOpaque_t) == 8 * 8);
static_assert(sizeof(cublasLtMatmulPreferenceOpaque_t) == 8 * 8);
static_assert(sizeof(cublasLtMatmulAlgo_t) == 8 * 8);

/// FAISS's functions; set once, before the first of them is called.
struct Loaded {
    decltype(&::cublasLtGetVersion) version;
    decltype(&::cublasLtCreate) create;
    decltype(&::cublasLtMatmul) matmul;
    decltype(&::cublasLtMatmulAlgoCheck) algoCheck;
    decltype(&::cublasLtMatmulAlgoConfigGetAttribute) algoGet;
    decltype(&::cublasLtMatmulAlgoConfigSetAttribute) algoSet;
    decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic;
    decltype(&::cublasLtMatmulDescInit_internal) descInit;
    decltype(&::cublasLtMatmulDescSetAttribute) descSet;
    decltype(&::cublasLtMatmulPreferenceInit_internal) preferenceInit;
    decltype(&::cublasLtMatmulPreferenceSetAttribute) preferenceSet;
    decltype(&::cublasLtMatrixLayoutInit_internal) layoutInit;
};

Loaded loaded;

/// What is wrong with it, or an empty string.
std::string load(const Original& original) {
    const auto find = [&](auto& function, const char* name) {
        function =
                reinterpret_cast<std::remove_reference_t<decltype(function)>>(
                        symbolBehind(original, name));
        return function != nullptr;
    };
    const bool found = find(loaded.version, "cublasLtGetVersion") &&
            find(loaded.create, "cublasLtCreate") &&
            find(loaded.matmul, "cublasLtMatmul") &&
            find(loaded.algoCheck, "cublasLtMatmulAlgoCheck") &&
            find(loaded.algoGet, "cublasLtMatmulAlgoConfigGetAttribute") &&
            find(loaded.algoSet, "cublasLtMatmulAlgoConfigSetAttribute") &&
            find(loaded.heuristic, "cublasLtMatmulAlgoGetHeuristic") &&
            find(loaded.descInit, "cublasLtMatmulDescInit_internal") &&
            find(loaded.descSet, "cublasLtMatmulDescSetAttribute") &&
            find(loaded.preferenceInit,
                 "cublasLtMatmulPreferenceInit_internal") &&
            find(loaded.preferenceSet,
                 "cublasLtMatmulPreferenceSetAttribute") &&
            find(loaded.layoutInit, "cublasLtMatrixLayoutInit_internal");
    constexpr size_t kLeastVersion = 120000;
    if (!found) {
        return "FAISS has loaded no cuBLASLt, which searches of many queries "
               "need";
    }
    return loaded.version() >= kLeastVersion
            ? ""
            : "FAISS's cuBLASLt is older than CUDA 12";
}

} // namespace

cublasHandle_t cublasLtOf(const Original& original) {
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    // Never destroyed: the CUDA driver may be gone by then.
    static auto& mutex = *new std::mutex;
    static auto& handles = *new std::map<int, cublasLtHandle_t>;
    const std::lock_guard<std::mutex> lock(mutex);
    static const auto& problem = *new std::string(load(original));
    if (!problem.empty()) {
        throw Error(problem);
    }
    cublasLtHandle_t& handle = handles[device];
    if (!handle) {
        const RelaxedCapture relaxed;
        BITS_CUBLAS_CHECK(loaded.create(&handle));
    }
    return reinterpret_cast<cublasHandle_t>(handle);
}

} // namespace faiss_bits::dropin

// ---- what kernels/knn/gemm calls -------------------------------------------

using faiss_bits::dropin::loaded;

const char* cublasGetStatusName(cublasStatus_t status) {
    // cuBLAS's own is not always loaded.
    static thread_local char text[32];
    std::snprintf(text, sizeof(text), "cublasStatus_t %d", int(status));
    return text;
}

cublasStatus_t cublasLtMatmul(
        cublasLtHandle_t handle,
        cublasLtMatmulDesc_t operation,
        const void* alpha,
        const void* a,
        cublasLtMatrixLayout_t aLayout,
        const void* b,
        cublasLtMatrixLayout_t bLayout,
        const void* beta,
        const void* c,
        cublasLtMatrixLayout_t cLayout,
        void* d,
        cublasLtMatrixLayout_t dLayout,
        const cublasLtMatmulAlgo_t* algorithm,
        void* workspace,
        size_t workspaceBytes,
        cudaStream_t stream) {
    return loaded.matmul(
            handle,
            operation,
            alpha,
            a,
            aLayout,
            b,
            bLayout,
            beta,
            c,
            cLayout,
            d,
            dLayout,
            algorithm,
            workspace,
            workspaceBytes,
            stream);
}

cublasStatus_t cublasLtMatmulAlgoCheck(
        cublasLtHandle_t handle,
        cublasLtMatmulDesc_t operation,
        cublasLtMatrixLayout_t aLayout,
        cublasLtMatrixLayout_t bLayout,
        cublasLtMatrixLayout_t cLayout,
        cublasLtMatrixLayout_t dLayout,
        const cublasLtMatmulAlgo_t* algorithm,
        cublasLtMatmulHeuristicResult_t* result) {
    return loaded.algoCheck(
            handle,
            operation,
            aLayout,
            bLayout,
            cLayout,
            dLayout,
            algorithm,
            result);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(
        const cublasLtMatmulAlgo_t* algorithm,
        cublasLtMatmulAlgoConfigAttributes_t which,
        void* value,
        size_t bytes,
        size_t* written) {
    return loaded.algoGet(algorithm, which, value, bytes, written);
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(
        cublasLtMatmulAlgo_t* algorithm,
        cublasLtMatmulAlgoConfigAttributes_t which,
        const void* value,
        size_t bytes) {
    return loaded.algoSet(algorithm, which, value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
        cublasLtHandle_t handle,
        cublasLtMatmulDesc_t operation,
        cublasLtMatrixLayout_t aLayout,
        cublasLtMatrixLayout_t bLayout,
        cublasLtMatrixLayout_t cLayout,
        cublasLtMatrixLayout_t dLayout,
        cublasLtMatmulPreference_t preference,
        int wanted,
        cublasLtMatmulHeuristicResult_t results[],
        int* found) {
    return loaded.heuristic(
            handle,
            operation,
            aLayout,
            bLayout,
            cLayout,
            dLayout,
            preference,
            wanted,
            results,
            found);
}

cublasStatus_t cublasLtMatmulDescInit_internal(
        cublasLtMatmulDesc_t operation,
        size_t size,
        cublasComputeType_t computeType,
        cudaDataType_t scaleType) {
    return loaded.descInit(operation, size, computeType, scaleType);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(
        cublasLtMatmulDesc_t operation,
        cublasLtMatmulDescAttributes_t which,
        const void* value,
        size_t bytes) {
    return loaded.descSet(operation, which, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(
        cublasLtMatmulPreference_t preference,
        size_t size) {
    return loaded.preferenceInit(preference, size);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
        cublasLtMatmulPreference_t preference,
        cublasLtMatmulPreferenceAttributes_t which,
        const void* value,
        size_t bytes) {
    return loaded.preferenceSet(preference, which, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(
        cublasLtMatrixLayout_t layout,
        size_t size,
        cudaDataType type,
        uint64_t rows,
        uint64_t cols,
        int64_t stride) {
    return loaded.layoutInit(layout, size, type, rows, cols, stride);
}
