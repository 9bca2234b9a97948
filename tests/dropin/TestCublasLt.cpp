#include <string>

#include <gtest/gtest.h>

#include "faiss_bits/dropin/CublasLt.h"
#include "faiss_bits/dropin/Device.h"
#include "kernels/common/CublasLtCalls.h"

/// What the drop-in library calls of FAISS's cuBLASLt, with one that looks
/// whether a capture on another stream would forbid what it does.

namespace {

int relaxed = 0;
int creates = 0;
int heuristics = 0;
int products = 0;
/// Calls that a capture would forbid.
int forbidden = 0;

size_t version() {
    return faiss_bits::kLeastCublasLtVersion;
}

template <int& kCalls>
void count() {
    ++kCalls;
    forbidden += relaxed == 0;
}

} // namespace

cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}

namespace faiss_bits {

namespace dropin {

RelaxedCapture::RelaxedCapture() {
    ++relaxed;
}
RelaxedCapture::~RelaxedCapture() {
    --relaxed;
}

void* symbolBehind(const Original&, const char* symbol) {
    const std::string name = symbol;
    CublasLtCalls fake;
    fake.create = [](cublasLtHandle_t* handle) {
        count<creates>();
        *handle = reinterpret_cast<cublasLtHandle_t>(&creates);
        return CUBLAS_STATUS_SUCCESS;
    };
    const auto counted =
            []<int & kCalls, class... Args>(cublasStatus_t(*&call)(Args...)) {
        call = [](Args...) {
            count<kCalls>();
            return CUBLAS_STATUS_NOT_SUPPORTED;
        };
    };
    counted.operator()<heuristics>(fake.heuristic);
    counted.operator()<products>(fake.matmul);
    if (name == "cublasLtGetVersion") {
        return reinterpret_cast<void*>(&version);
    }
    if (name == "cublasLtCreate") {
        return reinterpret_cast<void*>(fake.create);
    }
    if (name == "cublasLtMatmulAlgoGetHeuristic") {
        return reinterpret_cast<void*>(fake.heuristic);
    }
    if (name == "cublasLtMatmul") {
        return reinterpret_cast<void*>(fake.matmul);
    }
    // There, and not called.
    return reinterpret_cast<void*>(&version);
}

} // namespace dropin

namespace test {
namespace {

/// By arguments that are all zero, for the fake.
template <class Result, class... Args>
Result callWithZeros(Result (*call)(Args...)) {
    return call(Args{}...);
}

TEST(DropinCublasLt, MayLoadKernelsUnderCapture) {
    const cublasHandle_t handle = dropin::cublasLtOf({});
    EXPECT_EQ(reinterpret_cast<int*>(handle), &creates);
    EXPECT_EQ(dropin::cublasLtOf({}), handle);
    EXPECT_EQ(creates, 1);

    const CublasLtCalls& calls = cublasLtCalls();
    EXPECT_EQ(callWithZeros(calls.heuristic), CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(callWithZeros(calls.matmul), CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(heuristics, 1);
    EXPECT_EQ(products, 1);
    EXPECT_EQ(forbidden, 0);
    EXPECT_EQ(relaxed, 0); // for no longer than a call
}

} // namespace
} // namespace test
} // namespace faiss_bits
