#include "benchs/common/Keys.h"

#include <algorithm>
#include <stdexcept>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <curand_kernel.h>

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
        case Order::Sift:
            throw std::invalid_argument("order = sift: not from a formula");
        default:
            fillLine(keys, count, cols, order);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
}

/// One thread a key: a block's threads share the query and read neighbouring
/// vectors, which the L2 holds. Not timed.
template <class T>
__global__ void fillDistancesKernel(
        T* keys,
        int64_t cols,
        const float* vectors,
        const float* queries,
        int d) {
    const float* query = queries + int64_t(blockIdx.y) * d;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t c = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; c < cols;
         c += step) {
        float sum = 0;
        for (int i = 0; i < d; ++i) {
            const float difference = vectors[c * d + i] - query[i];
            sum += difference * difference;
        }
        keys[int64_t(blockIdx.y) * cols + c] = T(sum);
    }
}

/// Calls `use` with `keys` as what `type` says.
template <class Use>
void withType(void* keys, DataType type, Use&& use) {
    switch (type) {
        case DataType::Float32:
            return use(static_cast<float*>(keys));
        case DataType::Float16:
            return use(static_cast<__half*>(keys));
        case DataType::BFloat16:
            return use(static_cast<__nv_bfloat16*>(keys));
    }
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

void VectorFile::fill(void* keys, DataType type, int64_t rows, int64_t cols)
        const {
    const std::string why = refusal(rows, cols);
    if (!why.empty()) {
        throw std::invalid_argument(why);
    }
    const float* queries = vectors_ + (count_ - rows) * d_;
    withType(keys, type, [&](auto* typed) {
        // The grid has at most 65,535 blocks in y; the shapes have fewer rows.
        fillDistancesKernel<<<dim3(16, unsigned(rows)), kThreads>>>(
                typed, cols, vectors_, queries, d_);
        BITS_CUDA_CHECK(cudaGetLastError());
    });
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
}

} // namespace faiss_bits::bench
