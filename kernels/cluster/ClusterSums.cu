#include "kernels/cluster/ClusterSums.h"

#include <algorithm>
#include <bit>

#include "kernels/cluster/ClusterSums.cuh"
#include "kernels/common/CudaCheck.h"
#include "kernels/select/large_k/RadixSort.h"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr idx_t kObjectiveRows = 4096; // of a block

/// Short ones while there are too few to fill a GPU. A matter of n alone.
uint32_t chunkRowsOf(idx_t n) {
    return n < (idx_t(1) << 17) ? 32 : 128;
}

template <class T>
__global__ void makeEntriesKernel(
        const T* labels,
        uint32_t n,
        uint32_t k,
        uint64_t* entries) {
    const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    if (i < n) {
        const int64_t label = labels[i];
        const uint64_t upper = label >= 0 && label < int64_t(k) ? label : k;
        entries[i] = upper << 32 | i;
    }
}

/// starts[c]: entries of labels below c. c in 0..k.
__global__ void findStartsKernel(
        const uint64_t* sorted,
        uint32_t n,
        uint32_t k,
        uint32_t* starts) {
    const uint32_t c = blockIdx.x * kThreads + threadIdx.x;
    if (c > k) {
        return;
    }
    uint32_t low = 0;
    uint32_t high = n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (uint32_t(sorted[middle] >> 32) < c) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    starts[c] = low;
}

/// The sum of a block's values, in a fixed tree; in thread 0.
__device__ double sumOfBlock(double value) {
    __shared__ double values[kThreads];
    values[threadIdx.x] = value;
    __syncthreads();
    for (int step = kThreads / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            values[threadIdx.x] += values[threadIdx.x + step];
        }
        __syncthreads();
    }
    return values[0];
}

template <class T>
__global__ void objectivePartsKernel(
        const float* distances,
        const T* labels,
        idx_t n,
        idx_t k,
        double* parts) {
    const idx_t begin = blockIdx.x * kObjectiveRows;
    const idx_t end = min(begin + kObjectiveRows, n);
    double sum = 0;
    for (idx_t i = begin + threadIdx.x; i < end; i += kThreads) {
        const int64_t label = labels[i];
        sum += label >= 0 && label < k ? double(distances[i]) : 0.0;
    }
    sum = sumOfBlock(sum);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sum;
    }
}

__global__ void joinObjectiveKernel(
        const double* parts,
        int numParts,
        double* objective) {
    double sum = 0;
    for (int i = threadIdx.x; i < numParts; i += kThreads) {
        sum += parts[i];
    }
    sum = sumOfBlock(sum);
    if (threadIdx.x == 0) {
        *objective += sum;
    }
}

__global__ void findNotFiniteKernel(
        const float* values,
        size_t count,
        unsigned* outCount) {
    bool isFine = true;
    for (size_t i = size_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
         i += size_t(gridDim.x) * kThreads) {
        isFine = isFine && isfinite(values[i]);
    }
    if (!__syncthreads_and(isFine) && threadIdx.x == 0) {
        atomicAdd(outCount, 1u);
    }
}

unsigned blocksOf(uint64_t threads) {
    return unsigned((threads + kThreads - 1) / kThreads);
}

/// The scratch of a call, in the order in which it is taken.
struct Scratch {
    Scratch(const ClusterSumsProblem& p, WorkspaceSlices slices) {
        entries = slices.take<uint64_t>(p.n);
        other = slices.take<uint64_t>(p.n);
        tempBytes = radixSortTempBytes(p.n);
        temp = slices.take<uint8_t>(tempBytes);
        starts = slices.take<uint32_t>(p.k + 1);
        const uint32_t rows = chunkRowsOf(p.n);
        chunks = uint32_t((p.n + rows - 1) / rows);
        parts = slices.take<double>(size_t(chunks) * 2 * p.d);
        weightParts = slices.take<double>(p.weights ? size_t(chunks) * 2 : 0);
        objectives = int((p.n + kObjectiveRows - 1) / kObjectiveRows);
        objectiveParts = slices.take<double>(p.distances ? objectives : 0);
        bytes = slices.used();
    }

    uint64_t* entries;
    uint64_t* other;
    uint8_t* temp;
    size_t tempBytes;
    uint32_t* starts;
    uint32_t chunks;
    double* parts;
    double* weightParts;
    int objectives;
    double* objectiveParts;
    size_t bytes;
};

void checkShape(const ClusterSumsProblem& p) {
    BITS_THROW_IF_NOT_FMT(
            p.n >= 0 && p.n <= kMaxClusterRows,
            "n = %lld is outside 0..%lld",
            (long long)p.n,
            (long long)kMaxClusterRows);
    BITS_THROW_IF_NOT_FMT(p.d >= 1, "d = %d is below 1", p.d);
    BITS_THROW_IF_NOT_FMT(
            p.k >= 1 && p.k < (idx_t(1) << 31),
            "k = %lld is outside 1..2^31 - 1",
            (long long)p.k);
    BITS_THROW_IF_NOT_FMT(
            p.labelType <= IdType::Int64,
            "labelType = %d is unknown",
            int(p.labelType));
}

void checkPointers(const ClusterSumsProblem& p) {
    BITS_THROW_IF_NOT_FMT(p.vectors || p.n == 0, "vectors = nullptr");
    BITS_THROW_IF_NOT_FMT(p.labels || p.n == 0, "labels = nullptr");
    BITS_THROW_IF_NOT_FMT(p.outSums, "outSums = nullptr");
    BITS_THROW_IF_NOT_FMT(p.outWeights, "outWeights = nullptr");
    BITS_THROW_IF_NOT_FMT(p.outCounts, "outCounts = nullptr");
    BITS_THROW_IF_NOT_FMT(
            p.outObjective || !p.distances, "outObjective = nullptr");
}

template <int Lanes, bool Aligned>
void launchChunks(const ClusterChunks& chunks, cudaStream_t stream) {
    constexpr int kSlice = Lanes * kSumComponents;
    const uint64_t slices = (chunks.d + kSlice - 1) / kSlice;
    const uint64_t threads = slices * chunks.chunks * Lanes;
    const unsigned blocks = unsigned((threads + kSumThreads - 1) / kSumThreads);
    if (chunks.weights) {
        clusterChunksKernel<Lanes, Aligned, true>
                <<<blocks, kSumThreads, 0, stream>>>(chunks);
    } else {
        clusterChunksKernel<Lanes, Aligned, false>
                <<<blocks, kSumThreads, 0, stream>>>(chunks);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <bool Aligned>
void launchChunksOf(const ClusterChunks& chunks, cudaStream_t stream) {
    // Few components: no more lanes than have one.
    const int lanes = (chunks.d + kSumComponents - 1) / kSumComponents;
    const auto launch = lanes <= 4 ? launchChunks<4, Aligned>
            : lanes <= 8           ? launchChunks<8, Aligned>
            : lanes <= 16          ? launchChunks<16, Aligned>
                                   : launchChunks<32, Aligned>;
    launch(chunks, stream);
}

void runSums(
        const ClusterSumsProblem& p,
        const Scratch& scratch,
        const uint64_t* sorted,
        cudaStream_t stream) {
    ClusterChunks chunks;
    chunks.vectors = p.vectors;
    chunks.weights = p.weights;
    chunks.sorted = sorted;
    chunks.starts = scratch.starts;
    chunks.parts = scratch.parts;
    chunks.weightParts = scratch.weightParts;
    chunks.sums = p.outSums;
    chunks.weightSums = p.outWeights;
    chunks.counts = p.outCounts;
    chunks.n = uint32_t(p.n);
    chunks.k = uint32_t(p.k);
    chunks.d = p.d;
    chunks.chunkRows = chunkRowsOf(p.n);
    chunks.chunks = scratch.chunks;
    const bool aligned = p.d % kSumComponents == 0 &&
            reinterpret_cast<uintptr_t>(p.vectors) % sizeof(float4) == 0;
    aligned ? launchChunksOf<true>(chunks, stream)
            : launchChunksOf<false>(chunks, stream);
    const int threads = p.d <= 32 ? 32 : p.d <= 64 ? 64 : 128;
    if (p.weights) {
        joinPartsKernel<true><<<unsigned(p.k), threads, 0, stream>>>(chunks);
    } else {
        joinPartsKernel<false><<<unsigned(p.k), threads, 0, stream>>>(chunks);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class T>
void runOf(
        const ClusterSumsProblem& p,
        const Scratch& scratch,
        cudaStream_t stream) {
    const T* labels = static_cast<const T*>(p.labels);
    const auto n = uint32_t(p.n);
    const auto k = uint32_t(p.k);
    makeEntriesKernel<<<blocksOf(n), kThreads, 0, stream>>>(
            labels, n, k, scratch.entries);
    BITS_CUDA_CHECK(cudaGetLastError());
    const uint64_t* sorted = radixSort(
            scratch.entries,
            scratch.other,
            n,
            32,
            32 + int(std::bit_width(k)),
            scratch.temp,
            scratch.tempBytes,
            stream);
    findStartsKernel<<<blocksOf(uint64_t(k) + 1), kThreads, 0, stream>>>(
            sorted, n, k, scratch.starts);
    BITS_CUDA_CHECK(cudaGetLastError());
    runSums(p, scratch, sorted, stream);
    if (p.distances) {
        objectivePartsKernel<<<scratch.objectives, kThreads, 0, stream>>>(
                p.distances, labels, p.n, p.k, scratch.objectiveParts);
        BITS_CUDA_CHECK(cudaGetLastError());
        joinObjectiveKernel<<<1, kThreads, 0, stream>>>(
                scratch.objectiveParts, scratch.objectives, p.outObjective);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
}

} // namespace

size_t clusterSumsWorkspaceBytes(const ClusterSumsProblem& problem) {
    checkShape(problem);
    return Scratch(problem, WorkspaceSlices()).bytes;
}

void runClusterSums(
        const ClusterSumsProblem& problem,
        Workspace workspace,
        cudaStream_t stream) {
    checkShape(problem);
    checkPointers(problem);
    const ClusterSumsProblem& p = problem;
    const Scratch scratch(p, WorkspaceSlices(workspace));
    if (!p.accumulate) {
        const auto clear = [&](void* data, size_t bytes) {
            BITS_CUDA_CHECK(cudaMemsetAsync(data, 0, bytes, stream));
        };
        clear(p.outSums, sizeof(double) * p.k * p.d);
        clear(p.outWeights, sizeof(double) * p.k);
        clear(p.outCounts, sizeof(uint64_t) * p.k);
        if (p.outObjective) {
            clear(p.outObjective, sizeof(double));
        }
    }
    if (p.n == 0) {
        return;
    }
    p.labelType == IdType::Int32 ? runOf<int32_t>(p, scratch, stream)
                                 : runOf<int64_t>(p, scratch, stream);
}

void runFindNotFinite(
        const float* values,
        size_t count,
        unsigned* outCount,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(values || count == 0, "values = nullptr");
    BITS_THROW_IF_NOT_FMT(outCount, "outCount = nullptr");
    if (count == 0) {
        return;
    }
    constexpr uint64_t kMostBlocks = 4096; // the kernel strides over the rest
    const auto blocks = unsigned(std::min<uint64_t>(
            (uint64_t(count) + kThreads - 1) / kThreads, kMostBlocks));
    findNotFiniteKernel<<<blocks, kThreads, 0, stream>>>(
            values, count, outCount);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
