/// What ErrorBound.h assumes of the device's approximate functions, for every
/// float32 that they are given.

#include <cmath>
#include <cstring>

#include "kernels/knn/ErrorBound.h"
#include "kernels/knn/pairwise/PairwiseTerms.cuh"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

enum class Function { Log2, Exp2, Reciprocal, Root };

__device__ double errorOf(Function function, float a) {
    const double wide = a;
    switch (function) {
        case Function::Log2: {
            const double exact = log2(wide);
            return fabs(pairwise::approximateLog2(a) - exact) /
                    fmax(1.0, fabs(exact));
        }
        case Function::Exp2:
            return fabs(pairwise::approximateExp2(a) / exp2(wide) - 1);
        case Function::Reciprocal:
            return fabs(pairwise::approximateReciprocal(a) * wide - 1);
        default:
            return fabs(pairwise::approximateRoot(a) / sqrt(wide) - 1);
    }
}

/// The largest error, as the bits of a double, of floats whose bits are in
/// [first, last].
__global__ void worstKernel(
        Function function,
        uint32_t first,
        uint32_t last,
        unsigned long long* worst) {
    const uint64_t step = uint64_t(gridDim.x) * blockDim.x;
    double most = 0;
    for (uint64_t bits =
                 first + uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
         bits <= last;
         bits += step) {
        const double error = errorOf(function, __uint_as_float(uint32_t(bits)));
        // NaN is worse than any number.
        most = error <= most ? most : isnan(error) ? HUGE_VAL : error;
    }
    atomicMax(worst, (unsigned long long)__double_as_longlong(most));
}

uint32_t bitsOf(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/// Over the floats from `low` to `high`, which have one sign.
double worstOf(Function function, float low, float high) {
    const DeviceBuffer<unsigned long long> worst(1, 0);
    const uint32_t a = bitsOf(low);
    const uint32_t b = bitsOf(high);
    worstKernel<<<4096, 256>>>(
            function, std::min(a, b), std::max(a, b), worst.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    double value;
    const unsigned long long bits = worst.download()[0];
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

class Approximations : public GpuTest {
   protected:
    static void expectBelow(const char* name, double worst, double bound) {
        std::printf(
                "%s: 2^%.2f, assumed 2^%.2f\n",
                name,
                std::log2(worst),
                std::log2(bound));
        EXPECT_LE(worst, bound) << name;
    }
};

constexpr float kLeastNormal = 0x1p-126f;
constexpr float kMost = 0x1.fffffep127f;

TEST_F(Approximations, Log2) {
    expectBelow(
            "log2",
            worstOf(Function::Log2, kLeastNormal, kMost),
            bounds::kLog2Error);
}

TEST_F(Approximations, Exp2) {
    expectBelow(
            "exp2",
            std::max(
                    worstOf(Function::Exp2, 0.0f, 0x1.fffffep6f),
                    worstOf(Function::Exp2, -0.0f, -126.0f)),
            bounds::kExp2Error);
}

TEST_F(Approximations, Reciprocal) {
    expectBelow(
            "reciprocal",
            worstOf(Function::Reciprocal, kLeastNormal, 0x1p126f),
            bounds::kReciprocalError);
}

TEST_F(Approximations, Root) {
    expectBelow(
            "square root",
            worstOf(Function::Root, kLeastNormal, kMost),
            bounds::kRootError);
}

__global__ void edgesKernel(float* out) {
    const float subnormal = 0x1p-140f;
    out[0] = pairwise::approximateExp2(pairwise::approximateLog2(0.0f));
    out[1] = pairwise::approximateExp2(
            0.3f * pairwise::approximateLog2(subnormal));
    out[2] = pairwise::approximateRoot(0.0f);
    out[3] = pairwise::approximateRoot(subnormal);
    out[4] = pairwise::approximateExp2(-127.0f);
}

/// What the terms take zeros, subnormal numbers and powers below the range for.
TEST_F(Approximations, Zeros) {
    const DeviceBuffer<float> out(5, 0xFF);
    edgesKernel<<<1, 1>>>(out.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    EXPECT_EQ(out.download(), std::vector<float>(5, 0.0f));
}

} // namespace
} // namespace faiss_bits::test
