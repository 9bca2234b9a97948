/// Sorts the rows of a matrix of keys with 32-bit values by CUB: whichever of
/// its sorts suits the shape. Header only, so that each rival compiles it with
/// the CUB that it is measured with.
#pragma once

#include <cstdint>
#include <string>

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <cub/version.cuh>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::bench {

/// Of the CUB that this file is compiled with.
inline std::string cubVersion() {
    return std::to_string(CUB_VERSION / 100000) + "." +
            std::to_string(CUB_VERSION / 100 % 1000) + "." +
            std::to_string(CUB_VERSION % 100);
}

/// Begin of row i in a dense matrix.
struct RowBegin {
    int64_t cols;

    __host__ __device__ int64_t operator()(int64_t row) const {
        return row * cols;
    }
};

/// One sort of keys and values [rows, cols], ascending.
///
///   enough rows to fill the device   DeviceSegmentedSort up to 2^15 columns,
///                                    DeviceSegmentedRadixSort above
///   fewer                            DeviceRadixSort, row by row
template <class Key>
class CubSortRows {
   public:
    CubSortRows(int64_t rows, int64_t cols) : rows_(rows), cols_(cols) {}

    /// Bytes of temporary storage.
    size_t bytes() const {
        size_t bytes = 0;
        call(nullptr, bytes, {}, nullptr);
        return bytes;
    }

    struct Arrays {
        const Key* keys = nullptr;
        Key* outKeys = nullptr;
        const uint32_t* values = nullptr;
        uint32_t* outValues = nullptr;
        int64_t valueStride = 0; ///< 0: the same row of values for every row
    };

    /// Segmented sorts want the values of every row: no valueStride of 0.
    bool isRowByRow() const {
        return rows_ < kFullDevice;
    }

    void sort(
            void* scratch,
            size_t bytes,
            const Arrays& arrays,
            cudaStream_t stream) const {
        call(scratch, bytes, arrays, stream);
    }

   private:
    /// Two blocks for each multiprocessor of today's GPUs.
    static constexpr int64_t kFullDevice = 256;
    static constexpr int64_t kShort = 1 << 15;

    void call(
            void* scratch,
            size_t& bytes,
            const Arrays& a,
            cudaStream_t stream) const {
        if (isRowByRow()) {
            for (int64_t row = 0; row < (scratch ? rows_ : 1); ++row) {
                BITS_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
                        scratch,
                        bytes,
                        a.keys + row * cols_,
                        a.outKeys + row * cols_,
                        a.values + row * a.valueStride,
                        a.outValues + row * cols_,
                        cols_,
                        0,
                        int(sizeof(Key)) * 8,
                        stream));
            }
            return;
        }
        const auto begin = thrust::make_transform_iterator(
                thrust::make_counting_iterator<int64_t>(0), RowBegin{cols_});
        if (cols_ <= kShort) {
            BITS_CUDA_CHECK(cub::DeviceSegmentedSort::SortPairs(
                    scratch,
                    bytes,
                    a.keys,
                    a.outKeys,
                    a.values,
                    a.outValues,
                    rows_ * cols_,
                    rows_,
                    begin,
                    begin + 1,
                    stream));
        } else {
            BITS_CUDA_CHECK(cub::DeviceSegmentedRadixSort::SortPairs(
                    scratch,
                    bytes,
                    a.keys,
                    a.outKeys,
                    a.values,
                    a.outValues,
                    rows_ * cols_,
                    rows_,
                    begin,
                    begin + 1,
                    0,
                    int(sizeof(Key)) * 8,
                    stream));
        }
    }

    int64_t rows_;
    int64_t cols_;
};

template <class T>
__global__ void columnsKernel(T* columns, int64_t count, int64_t cols) {
    const int64_t threads = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count;
         i += threads) {
        columns[i] = T(i % cols);
    }
}

/// columns[i] = i % cols, enqueued on the default stream.
inline void fillColumns(uint32_t* columns, int64_t count, int64_t cols) {
    columnsKernel<<<2048, 256>>>(columns, count, cols);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits::bench
