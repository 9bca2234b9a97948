// List of Clusters: one cluster after the other, without waiting for any.

#include <algorithm>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "kernels/common/CudaCheck.h"
#include "kernels/metric_space/MetricBuild.h"
#include "kernels/metric_space/MetricChecks.h"
#include "kernels/metric_space/gpu/FiniteRows.h"
#include "kernels/metric_space/gpu/RowDistances.cuh"

namespace faiss_bits::metric_space {

namespace {

constexpr uint32_t kTaken = ~0u; // a key behind all distances
constexpr int kBestBlocks = 256;
/// Clusters after which what is taken is left out of the arrays.
constexpr int kCompactAfter = 16;
/// Clusters after which the host waits, and asks for interrupts.
constexpr int kAskAfter = 256;

/// A vector that is free, and the sum of its distances to all centers.
struct Best {
    double sum;
    uint32_t id;
    uint32_t place;
};

/// What the kernels share. Vectors that may be free have places 0 .. count - 1,
/// in the order of their ids.
struct Building {
    const float* vectors;
    int d;
    uint32_t count;
    uint32_t* ids;    // [count]
    double* sums;     // [count]
    uint8_t* isFree;  // [count]
    uint32_t* keys;   // [count] distance to the last center
    uint32_t* places; // [count]
    Best* best;       // [kBestBlocks]
    uint32_t* centers;
    float* radii;
    uint32_t* members;
};

template <Metric kMetric>
__global__ void __launch_bounds__(kRowThreads)
        distancesKernel(Building b, uint32_t cluster) {
    const float* center = b.vectors + int64_t(b.centers[cluster]) * b.d;
    forRowDistances<kMetric>(
            b.count,
            b.d,
            center,
            [&](uint32_t i) {
                return b.isFree[i] ? b.vectors + int64_t(b.ids[i]) * b.d
                                   : nullptr;
            },
            [&](uint32_t i, float distance) {
                b.keys[i] = __float_as_uint(distance);
                b.sums[i] += canonical::trueDistance(kMetric, distance);
            });
    for (uint32_t i = blockIdx.x * kRowThreads + threadIdx.x; i < b.count;
         i += gridDim.x * kRowThreads) {
        b.places[i] = i;
        if (!b.isFree[i]) {
            b.keys[i] = kTaken;
        }
    }
}

/// The first `size` of the sorted keys are the bucket.
__global__ void takeBucketKernel(
        Building b,
        uint32_t cluster,
        uint32_t firstMember,
        uint32_t size) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) {
        const uint32_t place = b.places[i];
        b.members[firstMember + i] = b.ids[place];
        b.isFree[place] = 0;
        if (i == size - 1) {
            b.radii[cluster] = __uint_as_float(b.keys[i]);
        }
    }
}

/// The greatest sum, then the lower id.
__device__ bool isBetter(const Best& a, const Best& b) {
    return a.sum != b.sum ? a.sum > b.sum : a.id < b.id;
}

/// The best of the block's threads, in thread 0.
__device__ Best bestOfBlock(Best own) {
    __shared__ Best shared[kRowThreads];
    shared[threadIdx.x] = own;
    __syncthreads();
    for (int step = kRowThreads / 2; step > 0; step /= 2) {
        if (threadIdx.x < step &&
            isBetter(shared[threadIdx.x + step], shared[threadIdx.x])) {
            shared[threadIdx.x] = shared[threadIdx.x + step];
        }
        __syncthreads();
    }
    return shared[0];
}

__device__ Best noBest() {
    return {-1.0, ~0u, 0};
}

__global__ void __launch_bounds__(kRowThreads) bestFreeKernel(Building b) {
    Best own = noBest();
    for (uint32_t i = blockIdx.x * kRowThreads + threadIdx.x; i < b.count;
         i += gridDim.x * kRowThreads) {
        const Best one{b.sums[i], b.ids[i], i};
        if (b.isFree[i] && isBetter(one, own)) {
            own = one;
        }
    }
    own = bestOfBlock(own);
    if (threadIdx.x == 0) {
        b.best[blockIdx.x] = own;
    }
}

__global__ void __launch_bounds__(kRowThreads)
        nextCenterKernel(Building b, uint32_t cluster) {
    static_assert(kBestBlocks == kRowThreads);
    const Best next = bestOfBlock(b.best[threadIdx.x]);
    if (threadIdx.x == 0) {
        b.centers[cluster] = next.id;
        b.isFree[next.place] = 0;
    }
}

/// What a build takes, in the order in which it is taken.
struct Scratch {
    uint32_t* ids[2];
    double* sums[2];
    uint32_t* keys[2];
    uint32_t* places[2];
    uint8_t* isFree;
    Best* best;
    uint32_t* centers;
    float* radii;
    uint32_t* members;
    uint32_t* numSelected;
    size_t tempBytes = 0;
    uint8_t* temp;

    Scratch(idx_t n, WorkspaceSlices& slices) {
        for (int i = 0; i < 2; ++i) {
            ids[i] = slices.take<uint32_t>(n);
            sums[i] = slices.take<double>(n);
            keys[i] = slices.take<uint32_t>(n);
            places[i] = slices.take<uint32_t>(n);
        }
        isFree = slices.take<uint8_t>(n);
        best = slices.take<Best>(kBestBlocks);
        centers = slices.take<uint32_t>(n);
        radii = slices.take<float>(n);
        members = slices.take<uint32_t>(n);
        numSelected = slices.take<uint32_t>(1);
        const int count = int(std::max<idx_t>(n, 1));
        cub::DoubleBuffer<uint32_t> k, v;
        size_t bytes = 0;
        BITS_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
                nullptr, tempBytes, k, v, count));
        BITS_CUDA_CHECK(cub::DeviceSelect::Flagged(
                nullptr, bytes, sums[0], isFree, sums[1], numSelected, count));
        tempBytes = std::max(tempBytes, bytes);
        BITS_CUDA_CHECK(cub::DeviceSelect::Flagged(
                nullptr, bytes, ids[0], isFree, ids[1], numSelected, count));
        tempBytes = std::max(tempBytes, bytes);
        temp = slices.take<uint8_t>(tempBytes);
    }
};

/// Drops the places of vectors that are taken; `left` are free.
void compact(
        Building& b,
        Scratch& scratch,
        uint32_t left,
        cudaStream_t stream) {
    BITS_CUDA_CHECK(cub::DeviceSelect::Flagged(
            scratch.temp,
            scratch.tempBytes,
            scratch.ids[0],
            b.isFree,
            scratch.ids[1],
            scratch.numSelected,
            int(b.count),
            stream));
    BITS_CUDA_CHECK(cub::DeviceSelect::Flagged(
            scratch.temp,
            scratch.tempBytes,
            scratch.sums[0],
            b.isFree,
            scratch.sums[1],
            scratch.numSelected,
            int(b.count),
            stream));
    std::swap(scratch.ids[0], scratch.ids[1]);
    std::swap(scratch.sums[0], scratch.sums[1]);
    b.ids = scratch.ids[0];
    b.sums = scratch.sums[0];
    b.count = left;
    BITS_CUDA_CHECK(cudaMemsetAsync(b.isFree, 1, left, stream));
}

template <class T>
std::vector<T> download(const T* data, size_t count, cudaStream_t stream) {
    std::vector<T> values(count);
    if (count > 0) {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                values.data(),
                data,
                count * sizeof(T),
                cudaMemcpyDeviceToHost,
                stream));
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    }
    return values;
}

} // namespace

size_t listOfClustersWorkspaceBytes(idx_t n) {
    WorkspaceSlices slices;
    Scratch(n, slices);
    return slices.used();
}

ListOfClusters buildListOfClustersOnGpu(
        const MetricVectors& vectors,
        const ListOfClustersOptions& options,
        Workspace workspace,
        cudaStream_t stream,
        const Interrupt& interrupt) {
    checkMetricVectors(vectors);
    checkOptions(options);
    WorkspaceSlices slices(workspace);
    Scratch scratch(vectors.n, slices);
    ListOfClusters list;
    list.bucketSize = options.bucketSize;
    std::vector<idx_t> finite;
    splitFiniteOnGpu(vectors, scratch.isFree, finite, list.rest, stream);
    if (finite.empty()) {
        return list;
    }
    const uint32_t all = uint32_t(finite.size());
    const idx_t first = firstCenter(options.seed, all);
    const std::vector<uint32_t> ids(finite.begin(), finite.end());
    const uint32_t firstId = ids[first];
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            scratch.ids[0],
            ids.data(),
            all * sizeof(uint32_t),
            cudaMemcpyHostToDevice,
            stream));
    BITS_CUDA_CHECK(
            cudaMemsetAsync(scratch.sums[0], 0, all * sizeof(double), stream));
    BITS_CUDA_CHECK(
            cudaMemsetAsync(scratch.radii, 0, all * sizeof(float), stream));
    BITS_CUDA_CHECK(cudaMemsetAsync(scratch.isFree, 1, all, stream));
    BITS_CUDA_CHECK(cudaMemsetAsync(scratch.isFree + first, 0, 1, stream));
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            scratch.centers,
            &firstId,
            sizeof(firstId),
            cudaMemcpyHostToDevice,
            stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream)); // `ids` is the host's

    Building b{};
    b.vectors = vectors.data;
    b.d = vectors.d;
    b.count = all;
    b.ids = scratch.ids[0];
    b.sums = scratch.sums[0];
    b.isFree = scratch.isFree;
    b.best = scratch.best;
    b.centers = scratch.centers;
    b.radii = scratch.radii;
    b.members = scratch.members;
    uint32_t left = all - 1;
    uint32_t members = 0;
    uint32_t clusters = 1;
    while (left > 0) {
        const uint32_t cluster = clusters - 1;
        b.keys = scratch.keys[0];
        b.places = scratch.places[0];
        withMetric(vectors.metric, [&](auto metric) {
            distancesKernel<metric()>
                    <<<rowBlocks(b.count, b.d), kRowThreads, 0, stream>>>(
                            b, cluster);
        });
        BITS_CUDA_CHECK(cudaGetLastError());
        cub::DoubleBuffer<uint32_t> keys(scratch.keys[0], scratch.keys[1]);
        cub::DoubleBuffer<uint32_t> places(
                scratch.places[0], scratch.places[1]);
        BITS_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
                scratch.temp,
                scratch.tempBytes,
                keys,
                places,
                int(b.count),
                0,
                32,
                stream));
        b.keys = keys.Current();
        b.places = places.Current();
        const uint32_t size = std::min(left, uint32_t(options.bucketSize));
        takeBucketKernel<<<
                (size + kRowThreads - 1) / kRowThreads,
                kRowThreads,
                0,
                stream>>>(b, cluster, members, size);
        BITS_CUDA_CHECK(cudaGetLastError());
        members += size;
        left -= size;
        if (left == 0) {
            break;
        }
        bestFreeKernel<<<kBestBlocks, kRowThreads, 0, stream>>>(b);
        BITS_CUDA_CHECK(cudaGetLastError());
        nextCenterKernel<<<1, kRowThreads, 0, stream>>>(b, clusters);
        BITS_CUDA_CHECK(cudaGetLastError());
        ++clusters;
        --left;
        if (clusters % kCompactAfter == 0 && left > 0) {
            compact(b, scratch, left, stream);
        }
        if (clusters % kAskAfter == 0) {
            BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
            if (interrupt) {
                interrupt();
            }
        }
    }
    if (interrupt) {
        interrupt();
    }
    const auto centers = download(scratch.centers, clusters, stream);
    const auto inBuckets = download(scratch.members, members, stream);
    list.centers.assign(centers.begin(), centers.end());
    list.members.assign(inBuckets.begin(), inBuckets.end());
    list.radii = download(scratch.radii, clusters, stream);
    return list;
}

} // namespace faiss_bits::metric_space
