#include "benchs/common/Keys.h"

#include <algorithm>
#include <stdexcept>

#include <curand_kernel.h>

#include "benchs/common/KeyTypes.cuh"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::bench {

namespace {

constexpr int kBlocks = 2048;
constexpr int kThreads = 256;

/// What a random key is, from a number that is uniform in (0, 1].
struct Uniform {
    __device__ float operator()(float u) const {
        return u;
    }
};

struct FewValues {
    __device__ float operator()(float u) const {
        return floorf(u * 15.999f) / 16;
    }
};

/// Infinity or NaN in a share of the places; the rest is uniform again.
struct SomeAre {
    float share;
    float special;

    __device__ float operator()(float u) const {
        return u <= share ? special : (u - share) / (1 - share);
    }
};

template <class T, class Make>
__global__ void fillRandomKernel(
        T* keys,
        int64_t count,
        uint64_t seed,
        Make make) {
    const int64_t thread = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    const int64_t threads = int64_t(gridDim.x) * blockDim.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, thread, 0, &state);
    for (int64_t i = thread; i < count; i += threads) {
        keys[i] = T(make(curand_uniform(&state)));
    }
}

/// key = start + step * column
template <class T>
__global__ void fillLineKernel(
        T* keys,
        int64_t count,
        int64_t cols,
        double start,
        double step) {
    const int64_t threads = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count;
         i += threads) {
        keys[i] = T(float(start + step * double(i % cols)));
    }
}

/// Whole numbers that a type can count without a gap.
template <class T>
constexpr double kCounts = 16777216;
template <>
constexpr double kCounts<__half> = 2048;
template <>
constexpr double kCounts<__nv_bfloat16> = 256;

template <class T>
void fillLine(T* keys, int64_t count, int64_t cols, Order order) {
    const double step = std::min(1.0, kCounts<T> / double(cols));
    const bool isDescending = order == Order::Descending;
    const bool isEqual = order == Order::Equal;
    const double start = isDescending ? step * double(cols)
            : isEqual                 ? 0.5
                                      : 0.0;
    const double slope = isDescending ? -step : isEqual ? 0.0 : step;
    fillLineKernel<<<kBlocks, kThreads>>>(keys, count, cols, start, slope);
}

template <class T>
void fill(T* keys, int64_t rows, int64_t cols, Order order, uint64_t seed) {
    const int64_t count = rows * cols;
    const auto random = [&](auto make) {
        fillRandomKernel<<<kBlocks, kThreads>>>(keys, count, seed, make);
    };
    switch (order) {
        case Order::Random:
            random(Uniform{});
            break;
        case Order::Few:
            random(FewValues{});
            break;
        case Order::HalfInf:
            random(SomeAre{0.5f, HUGE_VALF});
            break;
        case Order::Nan:
            random(SomeAre{0.1f, std::nanf("")});
            break;
        case Order::Ascending:
        case Order::Descending:
        case Order::Equal:
            fillLine(keys, count, cols, order);
            break;
        default:
            throw std::invalid_argument(
                    "order = " + nameOf(order) + ": not by fillKeys");
    }
    BITS_CUDA_CHECK(cudaGetLastError());
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
}

} // namespace

void fillKeys(
        void* keys,
        DataType type,
        int64_t rows,
        int64_t cols,
        Order order,
        uint64_t seed) {
    withType(keys, type, [&](auto* typed) {
        fill(typed, rows, cols, order, seed);
    });
}

} // namespace faiss_bits::bench
