#include "benchs/common/VectorFile.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

#include "benchs/common/DeviceData.h"
#include "benchs/common/KeyTypes.cuh"

namespace faiss_bits::bench {

namespace {

constexpr int kThreads = 256;
constexpr int kCenters = 256;

/// One thread a key: a block's threads share the query and read neighbouring
/// vectors, which the L2 holds. Column c is of vector order[c], or c.
template <class T>
__global__ void fillDistancesKernel(
        T* keys,
        int64_t cols,
        const float* vectors,
        const float* queries,
        int d,
        const uint32_t* order) {
    const float* query = queries + int64_t(blockIdx.y) * d;
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t c = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; c < cols;
         c += step) {
        const float* vector = vectors + int64_t(order ? order[c] : c) * d;
        float sum = 0;
        for (int i = 0; i < d; ++i) {
            const float difference = vector[i] - query[i];
            sum += difference * difference;
        }
        keys[int64_t(blockIdx.y) * cols + c] = T(sum);
    }
}

/// One thread a vector; of equally near centers the first.
__global__ void nearestCentersKernel(
        uint32_t* nearest,
        int64_t count,
        const float* vectors,
        const uint32_t* centers,
        int d) {
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i >= count) {
        return;
    }
    float least = HUGE_VALF;
    for (int j = 0; j < kCenters; ++j) {
        const float* center = vectors + int64_t(centers[j]) * d;
        float sum = 0;
        for (int c = 0; c < d; ++c) {
            const float difference = vectors[i * d + c] - center[c];
            sum += difference * difference;
        }
        if (sum < least) {
            least = sum;
            nearest[i] = j;
        }
    }
}

DeviceArray<uint32_t> onDevice(const std::vector<uint32_t>& values) {
    DeviceArray<uint32_t> copy(values.size());
    BITS_CUDA_CHECK(cudaMemcpy(
            copy.data(),
            values.data(),
            values.size() * sizeof(uint32_t),
            cudaMemcpyHostToDevice));
    return copy;
}

} // namespace

void VectorFile::fillInOrder(
        void* keys,
        DataType type,
        int64_t rows,
        int64_t cols,
        const uint32_t* order) const {
    const std::string why = refusal(rows, cols);
    if (!why.empty()) {
        throw std::invalid_argument(why);
    }
    const float* queries = vectors_ + (count_ - rows) * d_;
    withType(keys, type, [&](auto* typed) {
        // The grid has at most 65,535 blocks in y; the shapes have fewer rows.
        fillDistancesKernel<<<dim3(16, unsigned(rows)), kThreads>>>(
                typed, cols, vectors_, queries, d_, order);
        BITS_CUDA_CHECK(cudaGetLastError());
    });
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
}

void VectorFile::fill(void* keys, DataType type, int64_t rows, int64_t cols)
        const {
    fillInOrder(keys, type, rows, cols, nullptr);
}

std::vector<uint32_t> VectorFile::nearestCenters(
        const std::vector<uint32_t>& centers,
        int64_t count) const {
    const DeviceArray<uint32_t> centersThere = onDevice(centers);
    DeviceArray<uint32_t> nearest(count);
    nearestCentersKernel<<<
            unsigned((count + kThreads - 1) / kThreads),
            kThreads>>>(
            nearest.data(), count, vectors_, centersThere.data(), d_);
    BITS_CUDA_CHECK(cudaGetLastError());
    std::vector<uint32_t> result(count);
    BITS_CUDA_CHECK(cudaMemcpy(
            result.data(),
            nearest.data(),
            count * sizeof(uint32_t),
            cudaMemcpyDeviceToHost));
    return result;
}

void VectorFile::fillClustered(
        void* keys,
        DataType type,
        int64_t rows,
        int64_t cols,
        uint64_t seed) const {
    const std::string why = refusal(rows, cols);
    if (!why.empty()) {
        throw std::invalid_argument(why);
    }
    std::mt19937_64 random(seed);
    std::vector<uint32_t> centers(kCenters);
    for (uint32_t& center : centers) {
        center = uint32_t(random() % uint64_t(count_));
    }
    const std::vector<uint32_t> nearest = nearestCenters(centers, cols);
    std::vector<uint32_t> order(cols);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        return nearest[a] < nearest[b];
    });
    fillInOrder(keys, type, rows, cols, onDevice(order).data());
}

} // namespace faiss_bits::bench
