#include "kernels/knn/all_pairs/WideRows.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/certified/PairEstimate.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

/// Not of large ones.
__device__ __forceinline__ bool isInteger(float value) {
    constexpr float kInteger = 1.5f * (1 << 23); // its last bit is 1
    return value + kInteger - kInteger == value;
}

/// A warp a row.
template <class T>
__global__ __launch_bounds__(kThreads) void wideRowsKernel(
        const __grid_constant__ WideRowsParams params) {
    const T* data = static_cast<const T*>(params.rows.data);
    const int lane = threadIdx.x % kWarpSize;
    const int64_t step = int64_t(gridDim.x) * kWarps;
    bool areIntegers = true;
    for (int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarpSize;
         row < params.n;
         row += step) {
        const T* in = data + row * params.rows.rowStride;
        double* out = params.wide + row * params.stride;
        double square = 0;
#pragma unroll 4
        for (int64_t c = lane; c < params.stride; c += kWarpSize) {
            const bool isThere = c < params.d;
            const float component =
                    isThere ? toFloat(in[c * params.rows.columnStride]) : 0.0f;
            const float center =
                    isThere && params.center ? params.center[c] : 0.0f;
            const float from = isfinite(center) ? center : 0.0f;
            areIntegers =
                    areIntegers && isInteger(component) && isInteger(from);
            const double value = double(component) - double(from);
            square = __fma_rn(value, value, square);
            out[c] = value;
        }
#pragma unroll
        for (int distance = kWarpSize / 2; distance >= 1; distance /= 2) {
            square += __shfl_xor_sync(kFullWarp, square, distance);
        }
        areIntegers =
                areIntegers && square < EstimateRow<Metric::L2>::kExactSquares;
        if (lane == 0) {
            params.squares[row] = square;
        }
    }
    if (__any_sync(kFullWarp, !areIntegers) && lane == 0) {
        atomicOr(params.areNotIntegers, 1u);
    }
}

template <class T>
void launch(const WideRowsParams& params, cudaStream_t stream) {
    constexpr int64_t kMostBlocks = 2048;
    const int64_t blocks =
            std::min((params.n + kWarps - 1) / kWarps, kMostBlocks);
    wideRowsKernel<T><<<unsigned(blocks), kThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace

void runWideRows(const WideRowsParams& params, cudaStream_t stream) {
    switch (params.rows.type) {
        case DataType::Float32:
            return launch<float>(params, stream);
        case DataType::Float16:
            return launch<__half>(params, stream);
        case DataType::BFloat16:
            return launch<__nv_bfloat16>(params, stream);
    }
}

} // namespace faiss_bits
