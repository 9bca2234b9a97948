#include "kernels/range/boxes/BoxSums.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>

#include "kernels/common/CudaCheck.h"
#include "kernels/range/boxes/BoxParams.h"

namespace faiss_bits {

namespace {

cudaError_t sumsOf(
        void* temp,
        size_t& bytes,
        const uint32_t* counts,
        int64_t* offsets,
        size_t count,
        cudaStream_t stream) {
    return cub::DeviceScan::ExclusiveScan(
            temp,
            bytes,
            counts,
            offsets,
            cuda::std::plus<>(),
            int64_t(0),
            count,
            stream);
}

} // namespace

size_t boxSumsBytes(size_t count) {
    size_t bytes = 0;
    BITS_CUDA_CHECK(sumsOf(nullptr, bytes, nullptr, nullptr, count, nullptr));
    return bytes;
}

void runBoxSums(
        const uint32_t* counts,
        int64_t* offsets,
        size_t count,
        void* temp,
        size_t tempBytes,
        cudaStream_t stream) {
    BITS_CUDA_CHECK(sumsOf(temp, tempBytes, counts, offsets, count, stream));
}

size_t boxSortBytes(size_t rows) {
    size_t bytes = 0;
    cub::DoubleBuffer<uint32_t> k;
    cub::DoubleBuffer<uint32_t> v;
    BITS_CUDA_CHECK(
            cub::DeviceRadixSort::SortPairs(nullptr, bytes, k, v, int(rows)));
    return bytes;
}

const uint32_t* sortBoxQueries(
        uint32_t* const (&keys)[2],
        uint32_t* const (&numbers)[2],
        size_t rows,
        void* temp,
        size_t tempBytes,
        cudaStream_t stream) {
    cub::DoubleBuffer<uint32_t> k(keys[0], keys[1]);
    cub::DoubleBuffer<uint32_t> v(numbers[0], numbers[1]);
    BITS_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
            temp, tempBytes, k, v, int(rows), 0, kBoxQueryBits, stream));
    return v.Current();
}

} // namespace faiss_bits
