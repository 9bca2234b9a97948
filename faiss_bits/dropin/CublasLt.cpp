#include "faiss_bits/dropin/CublasLt.h"

#include <map>
#include <mutex>
#include <string>

#include "faiss_bits/dropin/Device.h"
#include "kernels/common/CublasLtCalls.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits {

namespace {

/// FAISS's functions, and those by which products call them; set once, before
/// the first handle is made.
CublasLtCalls loaded;
CublasLtCalls called;

/// A function of FAISS's that loads kernels when it first needs them, which a
/// capture on another stream would forbid.
template <auto kCall, class Result, class... Args>
void callRelaxed(Result (*&call)(Args...)) {
    call = [](Args... args) {
        const dropin::RelaxedCapture relaxed;
        return (loaded.*kCall)(args...);
    };
}

/// What is wrong with it, or an empty string.
std::string load(const dropin::Original& original) {
    const std::string missing =
            fillCublasLtCalls(loaded, [&](const char* name) {
                return dropin::symbolBehind(original, name);
            });
    if (!missing.empty()) {
        return "FAISS has loaded no cuBLASLt, which searches of many queries "
               "need (no " +
                missing + ")";
    }
    called = loaded;
    callRelaxed<&CublasLtCalls::create>(called.create);
    callRelaxed<&CublasLtCalls::heuristic>(called.heuristic);
    callRelaxed<&CublasLtCalls::matmul>(called.matmul);
    return loaded.version() >= kLeastCublasLtVersion
            ? ""
            : "FAISS's cuBLASLt is older than CUDA 12";
}

} // namespace

/// Products have a handle of cublasLtOf, so it was asked before.
const CublasLtCalls& cublasLtCalls() {
    return called;
}

namespace dropin {

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
        BITS_CUBLAS_CHECK(called.create(&handle));
    }
    return reinterpret_cast<cublasHandle_t>(handle);
}

} // namespace dropin

} // namespace faiss_bits
