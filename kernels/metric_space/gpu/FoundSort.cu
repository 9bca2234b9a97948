// From pairs in any order to results, by CUB's radix sort.

#include "kernels/metric_space/gpu/FoundSort.h"

#include <cub/device/device_radix_sort.cuh>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::metric_space {

namespace {

constexpr int kThreads = 256;

unsigned blocksOf(uint64_t threads) {
    return unsigned((threads + kThreads - 1) / kThreads);
}

int bitsFor(uint64_t count) {
    int bits = 0;
    while ((uint64_t(1) << bits) < count) {
        ++bits;
    }
    return bits;
}

/// limits[q]: keys below query q. q in 0 .. rows.
__global__ void limitsKernel(
        const uint64_t* keys,
        idx_t total,
        uint32_t rows,
        int shift,
        idx_t* limits) {
    const uint32_t q = blockIdx.x * kThreads + threadIdx.x;
    if (q > rows) {
        return;
    }
    idx_t low = 0;
    idx_t high = total;
    while (low < high) {
        const idx_t middle = low + (high - low) / 2;
        if ((keys[middle] >> shift) < q) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    limits[q] = low;
}

__global__ void idsKernel(
        const uint64_t* keys,
        idx_t total,
        int idBits,
        idx_t* ids) {
    const idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x;
    if (i < total) {
        ids[i] = idx_t(keys[i] & ((uint64_t(1) << idBits) - 1));
    }
}

/// (query, id), distance to (query, distance), id. Distances are not negative,
/// so their bits are ordered as they are.
__global__ void byDistanceKernel(
        uint64_t* keys,
        uint32_t* values,
        idx_t total,
        int idBits) {
    const idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x;
    if (i < total) {
        const uint64_t key = keys[i];
        keys[i] = key >> idBits << 32 | values[i];
        values[i] = uint32_t(key & ((uint64_t(1) << idBits) - 1));
    }
}

__global__ void nearestKernel(
        const uint64_t* keys,
        const uint32_t* values,
        const idx_t* limits,
        idx_t places,
        idx_t k,
        float* outDistances,
        idx_t* outIds) {
    const idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x;
    if (i >= places) {
        return;
    }
    const idx_t at = limits[i / k] + i % k;
    const bool isThere = at < limits[i / k + 1];
    outDistances[i] =
            isThere ? __uint_as_float(uint32_t(keys[at])) : 3.402823466e+38f;
    outIds[i] = isThere ? idx_t(values[at]) : -1;
}

__global__ void kthKernel(
        const uint64_t* keys,
        const idx_t* limits,
        uint32_t rows,
        idx_t k,
        float* outLimits) {
    const uint32_t q = blockIdx.x * kThreads + threadIdx.x;
    if (q < rows) {
        const idx_t at = limits[q] + k - 1;
        outLimits[q] = __uint_as_float(
                at < limits[q + 1] ? uint32_t(keys[at]) : 0x7f800000u);
    }
}

/// One sort of both arrays; they are where they are found then.
struct Sorted {
    uint64_t* keys;
    uint64_t* otherKeys;
    uint32_t* values;

    Sorted(const SortArrays& arrays,
           bool isFirst,
           idx_t total,
           int bits,
           cudaStream_t stream) {
        const int from = isFirst ? 0 : 1;
        cub::DoubleBuffer<uint64_t> k(arrays.keys[from], arrays.keys[1 - from]);
        cub::DoubleBuffer<uint32_t> v(
                arrays.values[from], arrays.values[1 - from]);
        if (total > 0) {
            size_t bytes = arrays.tempBytes;
            BITS_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
                    arrays.temp, bytes, k, v, int(total), 0, bits, stream));
        }
        keys = k.Current();
        otherKeys = k.Alternate();
        values = v.Current();
    }
};

void findLimits(
        const uint64_t* keys,
        idx_t total,
        uint32_t rows,
        int shift,
        idx_t* limits,
        cudaStream_t stream) {
    limitsKernel<<<blocksOf(uint64_t(rows) + 1), kThreads, 0, stream>>>(
            keys, total, rows, shift, limits);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void toDistanceKeys(
        uint64_t* keys,
        uint32_t* values,
        idx_t total,
        int idBits,
        cudaStream_t stream) {
    if (total > 0) {
        byDistanceKernel<<<blocksOf(total), kThreads, 0, stream>>>(
                keys, values, total, idBits);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
}

/// At least one bit, of the query and what is below it.
int keyBits(uint32_t rows, int below) {
    const int bits = below + bitsFor(rows);
    return bits > 0 ? bits : 1;
}

} // namespace

size_t foundSortTempBytes(idx_t capacity) {
    size_t bytes = 0;
    cub::DoubleBuffer<uint64_t> k;
    cub::DoubleBuffer<uint32_t> v;
    BITS_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
            nullptr, bytes, k, v, int(capacity)));
    return bytes;
}

SortedRange sortRange(
        const FoundPairs& found,
        const SortArrays& arrays,
        idx_t total,
        uint32_t rows,
        idx_t* limits,
        cudaStream_t stream) {
    const Sorted sorted(
            arrays, true, total, keyBits(rows, found.idBits), stream);
    findLimits(sorted.keys, total, rows, found.idBits, limits, stream);
    // The other array of keys is free.
    idx_t* ids = reinterpret_cast<idx_t*>(sorted.otherKeys);
    if (total > 0) {
        idsKernel<<<blocksOf(total), kThreads, 0, stream>>>(
                sorted.keys, total, found.idBits, ids);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
    return {limits, reinterpret_cast<float*>(sorted.values), ids};
}

void sortNearest(
        const FoundPairs& found,
        const SortArrays& arrays,
        idx_t total,
        uint32_t rows,
        idx_t k,
        idx_t* limits,
        float* outDistances,
        idx_t* outIds,
        cudaStream_t stream) {
    const Sorted byId(arrays, true, total, keyBits(rows, found.idBits), stream);
    toDistanceKeys(byId.keys, byId.values, total, found.idBits, stream);
    SortArrays again = arrays;
    const bool isFirst = byId.keys == arrays.keys[0];
    const bool valuesFirst = byId.values == arrays.values[0];
    if (isFirst != valuesFirst) {
        std::swap(again.values[0], again.values[1]);
    }
    // Stable, so that equal distances stay by their ids.
    const Sorted sorted(again, isFirst, total, keyBits(rows, 32), stream);
    findLimits(sorted.keys, total, rows, 32, limits, stream);
    nearestKernel<<<blocksOf(uint64_t(rows) * k), kThreads, 0, stream>>>(
            sorted.keys,
            sorted.values,
            limits,
            idx_t(rows) * k,
            k,
            outDistances,
            outIds);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void sortLimits(
        const FoundPairs& found,
        const SortArrays& arrays,
        idx_t total,
        uint32_t rows,
        idx_t k,
        idx_t* limits,
        float* outLimits,
        cudaStream_t stream) {
    toDistanceKeys(
            arrays.keys[0], arrays.values[0], total, found.idBits, stream);
    const Sorted sorted(arrays, true, total, keyBits(rows, 32), stream);
    findLimits(sorted.keys, total, rows, 32, limits, stream);
    kthKernel<<<blocksOf(rows), kThreads, 0, stream>>>(
            sorted.keys, limits, rows, k, outLimits);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits::metric_space
