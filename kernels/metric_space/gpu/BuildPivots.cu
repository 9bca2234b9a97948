// Pivots for SSS: each is found when the distances to those before are known.

#include <algorithm>

#include <cub/device/device_radix_sort.cuh>

#include "kernels/common/CudaCheck.h"
#include "kernels/metric_space/MetricBuild.h"
#include "kernels/metric_space/MetricChecks.h"
#include "kernels/metric_space/PivotOrder.h"
#include "kernels/metric_space/gpu/FiniteRows.h"
#include "kernels/metric_space/gpu/RowDistances.cuh"

namespace faiss_bits::metric_space {

namespace {

/// The finite vectors have places 0 .. count - 1, in the order of their ids.
struct Finding {
    const float* vectors;
    int d;
    uint32_t count;
    const uint32_t* ids; // [count]
    float* nearest;      // [count] to the nearest pivot
    uint32_t* pivotOf;   // [count] which that is
    /// The greatest distance in the upper half, and of that the first place,
    /// inverted: so that the greatest number is wanted.
    unsigned long long* farthest;
    uint32_t* next; // the first place that is far from all pivots
};

template <Metric kMetric>
__global__ void __launch_bounds__(kRowThreads)
        farthestKernel(Finding f, uint32_t from) {
    forRowDistances<kMetric>(
            f.count,
            f.d,
            f.vectors + int64_t(f.ids[from]) * f.d,
            [&](uint32_t i) { return f.vectors + int64_t(f.ids[i]) * f.d; },
            [&](uint32_t i, float distance) {
                // Few are greater than what was seen before.
                const unsigned long long entry =
                        (unsigned long long)(__float_as_uint(distance)) << 32 |
                        (~i);
                if (entry > *(volatile unsigned long long*)f.farthest) {
                    atomicMax(f.farthest, entry);
                }
            });
}

/// Takes a pivot, and looks for the next among the places behind it.
template <Metric kMetric>
__global__ void __launch_bounds__(kRowThreads) takePivotKernel(
        Finding f,
        uint32_t place,
        uint32_t number,
        double least) {
    forRowDistances<kMetric>(
            f.count,
            f.d,
            f.vectors + int64_t(f.ids[place]) * f.d,
            [&](uint32_t i) { return f.vectors + int64_t(f.ids[i]) * f.d; },
            [&](uint32_t i, float distance) {
                float nearest = number == 0 ? distance : f.nearest[i];
                if (number == 0 || distance < nearest) {
                    nearest = distance;
                    f.nearest[i] = distance;
                    f.pivotOf[i] = number;
                }
                if (i > place && nearest > 0 &&
                    canonical::trueDistance(kMetric, nearest) >= least &&
                    i < *(volatile uint32_t*)f.next) {
                    atomicMin(f.next, i);
                }
            });
}

/// Keys by the nearest pivot. Distances are not negative, so their bits are
/// ordered as they are.
__global__ void nearestKeysKernel(Finding f, uint64_t* keys, uint32_t* places) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < f.count) {
        keys[i] = uint64_t(f.pivotOf[i]) << 32 | __float_as_uint(f.nearest[i]);
        places[i] = i;
    }
}

/// What a pivot has of all keys along the curve.
template <Metric kMetric>
__global__ void __launch_bounds__(kRowThreads) curveKeysKernel(
        Finding f,
        uint32_t pivot,
        double maxDistance,
        int number,
        int pivots,
        uint64_t* keys,
        uint32_t* places) {
    forRowDistances<kMetric>(
            f.count,
            f.d,
            f.vectors + int64_t(pivot) * f.d,
            [&](uint32_t i) { return f.vectors + int64_t(f.ids[i]) * f.d; },
            [&](uint32_t i, float distance) {
                const uint64_t bits = curveBits(
                        kMetric, distance, maxDistance, number, pivots);
                keys[i] = number == 0 ? bits : keys[i] | bits;
                places[i] = i;
            });
}

struct Scratch {
    uint8_t* flags;
    uint32_t* ids;
    float* nearest;
    uint32_t* pivotOf;
    unsigned long long* farthest;
    uint32_t* next;
    uint64_t* keys[2];
    uint32_t* places[2];
    size_t tempBytes = 0;
    uint8_t* temp;

    Scratch(idx_t n, WorkspaceSlices& slices) {
        flags = slices.take<uint8_t>(n);
        ids = slices.take<uint32_t>(n);
        nearest = slices.take<float>(n);
        pivotOf = slices.take<uint32_t>(n);
        farthest = slices.take<unsigned long long>(1);
        next = slices.take<uint32_t>(1);
        for (int i = 0; i < 2; ++i) {
            keys[i] = slices.take<uint64_t>(n);
            places[i] = slices.take<uint32_t>(n);
        }
        cub::DoubleBuffer<uint64_t> k;
        cub::DoubleBuffer<uint32_t> v;
        BITS_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
                nullptr, tempBytes, k, v, int(std::max<idx_t>(n, 1))));
        temp = slices.take<uint8_t>(tempBytes);
    }
};

template <class T>
T readOne(const T* from, cudaStream_t stream) {
    T value;
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            &value, from, sizeof(T), cudaMemcpyDeviceToHost, stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    return value;
}

} // namespace

size_t pivotsWorkspaceBytes(idx_t n) {
    WorkspaceSlices slices;
    Scratch(n, slices);
    return slices.used();
}

PivotTable buildPivotsOnGpu(
        const MetricVectors& vectors,
        const PivotOptions& options,
        Workspace workspace,
        cudaStream_t stream,
        const Interrupt& interrupt) {
    checkMetricVectors(vectors);
    checkOptions(options);
    WorkspaceSlices slices(workspace);
    Scratch scratch(vectors.n, slices);
    PivotTable table;
    std::vector<idx_t> finite;
    splitFiniteOnGpu(vectors, scratch.flags, finite, table.rest, stream);
    if (finite.empty()) {
        return table;
    }
    const std::vector<uint32_t> ids(finite.begin(), finite.end());
    const uint32_t count = uint32_t(ids.size());
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            scratch.ids,
            ids.data(),
            count * sizeof(uint32_t),
            cudaMemcpyHostToDevice,
            stream));
    const Finding f{
            vectors.data,
            vectors.d,
            count,
            scratch.ids,
            scratch.nearest,
            scratch.pivotOf,
            scratch.farthest,
            scratch.next};
    const unsigned blocks = rowBlocks(count, vectors.d);
    uint32_t from = 0;
    for (int sweep = 0; sweep < kMaxDistanceSweeps; ++sweep) {
        BITS_CUDA_CHECK(
                cudaMemsetAsync(f.farthest, 0, sizeof(*f.farthest), stream));
        withMetric(vectors.metric, [&](auto metric) {
            farthestKernel<metric()>
                    <<<blocks, kRowThreads, 0, stream>>>(f, from);
        });
        BITS_CUDA_CHECK(cudaGetLastError());
        const unsigned long long entry = readOne(f.farthest, stream);
        from = ~uint32_t(entry);
        const uint32_t bits = uint32_t(entry >> 32);
        float distance;
        std::memcpy(&distance, &bits, sizeof(distance));
        table.maxDistance = std::max(
                table.maxDistance,
                canonical::trueDistance(vectors.metric, distance));
    }
    const double least = options.alpha * table.maxDistance;
    for (uint32_t at = 0; at < count;) {
        if (interrupt) {
            interrupt();
        }
        const uint32_t number = uint32_t(table.pivots.size());
        table.pivots.push_back(finite[at]);
        BITS_CUDA_CHECK(cudaMemsetAsync(f.next, 0xFF, sizeof(*f.next), stream));
        withMetric(vectors.metric, [&](auto metric) {
            takePivotKernel<metric()>
                    <<<blocks, kRowThreads, 0, stream>>>(f, at, number, least);
        });
        BITS_CUDA_CHECK(cudaGetLastError());
        at = int(table.pivots.size()) == options.maxPivots
                ? count
                : readOne(f.next, stream);
    }
    const bool byCurve = vectors.d <= kCurveDims;
    if (!byCurve) {
        nearestKeysKernel<<<
                (count + kRowThreads - 1) / kRowThreads,
                kRowThreads,
                0,
                stream>>>(f, scratch.keys[0], scratch.places[0]);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
    const int pivots =
            byCurve ? std::min<int>(table.pivots.size(), kCurvePivots) : 0;
    for (int p = 0; p < pivots; ++p) {
        withMetric(vectors.metric, [&](auto metric) {
            curveKeysKernel<metric()><<<blocks, kRowThreads, 0, stream>>>(
                    f,
                    uint32_t(table.pivots[p]),
                    table.maxDistance,
                    p,
                    pivots,
                    scratch.keys[0],
                    scratch.places[0]);
        });
        BITS_CUDA_CHECK(cudaGetLastError());
    }
    cub::DoubleBuffer<uint64_t> keys(scratch.keys[0], scratch.keys[1]);
    cub::DoubleBuffer<uint32_t> places(scratch.places[0], scratch.places[1]);
    BITS_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
            scratch.temp,
            scratch.tempBytes,
            keys,
            places,
            int(count),
            0,
            byCurve ? kCurveBits : 64,
            stream));
    std::vector<uint32_t> order(count);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            order.data(),
            places.Current(),
            count * sizeof(uint32_t),
            cudaMemcpyDeviceToHost,
            stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    for (const uint32_t place : order) {
        table.order.push_back(finite[place]);
    }
    return table;
}

} // namespace faiss_bits::metric_space
