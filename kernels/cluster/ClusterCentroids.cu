#include "kernels/cluster/ClusterCentroids.h"

#include "kernels/common/CudaCheck.h"

namespace faiss_bits {

namespace {

constexpr int kThreads = 128;

void checkShape(idx_t k, int d, const void* centroids) {
    BITS_THROW_IF_NOT_FMT(
            k >= 1 && k < (idx_t(1) << 31),
            "k = %lld is outside 1..2^31 - 1",
            (long long)k);
    BITS_THROW_IF_NOT_FMT(d >= 1, "d = %d is below 1", d);
    BITS_THROW_IF_NOT_FMT(centroids, "centroids = nullptr");
}

/// A block a centroid.
__global__ void meansKernel(
        const double* sums,
        const double* weights,
        idx_t first,
        int d,
        float* centroids) {
    const size_t cluster = size_t(first) + blockIdx.x;
    const double weight = weights[cluster];
    // What the choice of clusters to split asks of the weights, too.
    const bool isEmpty = float(weight) == 0;
    for (int c = threadIdx.x; c < d; c += kThreads) {
        const size_t at = cluster * d + c;
        centroids[at] = isEmpty ? 0.0f : float(sums[at] / weight);
    }
}

/// A thread a component: splits follow each other, as one may take from
/// another.
__global__ void splitsKernel(
        const ClusterSplit* splits,
        idx_t numSplits,
        int d,
        float* centroids) {
    const int c = blockIdx.x * kThreads + threadIdx.x;
    if (c >= d) {
        return;
    }
    const float up = 1 + 0x1p-10f;
    const float down = 1 - 0x1p-10f;
    for (idx_t i = 0; i < numSplits; ++i) {
        const ClusterSplit split = splits[i];
        const float value = centroids[size_t(split.from) * d + c];
        centroids[size_t(split.to) * d + c] = value * (c % 2 == 0 ? up : down);
        centroids[size_t(split.from) * d + c] =
                value * (c % 2 == 0 ? down : up);
    }
}

__global__ void finishKernel(
        int d,
        bool normalize,
        bool round,
        float* centroids) {
    __shared__ double squares[kThreads];
    float* centroid = centroids + size_t(blockIdx.x) * d;
    double norm = 0;
    if (normalize) {
        double sum = 0;
        for (int c = threadIdx.x; c < d; c += kThreads) {
            sum += double(centroid[c]) * centroid[c];
        }
        squares[threadIdx.x] = sum;
        __syncthreads();
        for (int step = kThreads / 2; step > 0; step /= 2) {
            if (threadIdx.x < step) {
                squares[threadIdx.x] += squares[threadIdx.x + step];
            }
            __syncthreads();
        }
        norm = sqrt(squares[0]);
    }
    for (int c = threadIdx.x; c < d; c += kThreads) {
        float value = centroid[c];
        if (normalize && norm > 0) {
            value = float(value / norm);
        }
        centroid[c] = round ? roundf(value) : value;
    }
}

} // namespace

void runClusterMeans(
        const double* sums,
        const double* weights,
        idx_t first,
        idx_t k,
        int d,
        float* centroids,
        cudaStream_t stream) {
    checkShape(k, d, centroids);
    BITS_THROW_IF_NOT_FMT(sums, "sums = nullptr");
    BITS_THROW_IF_NOT_FMT(weights, "weights = nullptr");
    BITS_THROW_IF_NOT_FMT(
            first >= 0 && first <= k,
            "first = %lld is outside 0..%lld",
            (long long)first,
            (long long)k);
    if (first == k) {
        return;
    }
    meansKernel<<<unsigned(k - first), kThreads, 0, stream>>>(
            sums, weights, first, d, centroids);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runClusterSplits(
        const ClusterSplit* splits,
        idx_t numSplits,
        int d,
        float* centroids,
        cudaStream_t stream) {
    checkShape(1, d, centroids);
    BITS_THROW_IF_NOT_FMT(
            numSplits >= 0,
            "numSplits = %lld is negative",
            (long long)numSplits);
    if (numSplits == 0) {
        return;
    }
    BITS_THROW_IF_NOT_FMT(splits, "splits = nullptr");
    splitsKernel<<<
            unsigned((d + kThreads - 1) / kThreads),
            kThreads,
            0,
            stream>>>(splits, numSplits, d, centroids);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runFinishCentroids(
        idx_t k,
        int d,
        bool normalize,
        bool round,
        float* centroids,
        cudaStream_t stream) {
    checkShape(k, d, centroids);
    if (!normalize && !round) {
        return;
    }
    finishKernel<<<unsigned(k), kThreads, 0, stream>>>(
            d, normalize, round, centroids);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
