#include "kernels/knn/fused/SlotRows.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

namespace {

constexpr int kCopyThreads = 256;
static_assert(kMostSlotSteps * kPairLanes <= kWarpSize); // of a row

template <class T>
__global__ __launch_bounds__(kCopyThreads) void slotRowsKernel(
        const T* vectors,
        int64_t rowStride,
        int64_t columnStride,
        int64_t packs,
        int d,
        int rowPacks,
        float4* rows) {
    waitForPrevious();
    double* const squares = reinterpret_cast<double*>(rows + packs);
    // Whole warps go on: their lanes add up a row's squares.
    const int64_t end = (packs + kWarpSize - 1) / kWarpSize * kWarpSize;
    for (int64_t i = int64_t(blockIdx.x) * kCopyThreads + threadIdx.x; i < end;
         i += int64_t(gridDim.x) * kCopyThreads) {
        const bool isThere = i < packs;
        const int64_t row = i / rowPacks;
        const int at = int(i - row * rowPacks);
        const int first = at / kPairLanes * kSlotStep + at % kPairLanes;
        float pack[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int c = first + j * kPairLanes;
            pack[j] = isThere && c < d
                    ? toFloat(vectors[row * rowStride + c * columnStride])
                    : 0.0f;
        }
        double square = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            square = __fma_rn(double(pack[j]), double(pack[j]), square);
        }
        for (int lanes = rowPacks / 2; lanes >= 1; lanes /= 2) {
            square += __shfl_xor_sync(kFullWarp, square, lanes);
        }
        if (isThere) {
            rows[i] = make_float4(pack[0], pack[1], pack[2], pack[3]);
            if (at == 0) {
                squares[row] = square;
            }
        }
    }
}

} // namespace

void launchSlotRows(
        const VectorsParams& vectors,
        int64_t n,
        int d,
        float* rows,
        cudaStream_t stream) {
    const int rowPacks = slotSteps(d) * kPairLanes;
    const int64_t packs = n * rowPacks;
    constexpr int64_t kMostBlocks = 16384;
    const unsigned blocks = unsigned(std::min<int64_t>(
            (packs + kCopyThreads - 1) / kCopyThreads, kMostBlocks));
    const auto launchFor = [&]<class T>(const T* data) {
        slotRowsKernel<<<blocks, kCopyThreads, 0, stream>>>(
                data,
                vectors.rowStride,
                vectors.columnStride,
                packs,
                d,
                rowPacks,
                reinterpret_cast<float4*>(rows));
        BITS_CUDA_CHECK(cudaGetLastError());
    };
    switch (vectors.type) {
        case DataType::Float32:
            return launchFor(static_cast<const float*>(vectors.data));
        case DataType::Float16:
            return launchFor(static_cast<const __half*>(vectors.data));
        case DataType::BFloat16:
            return launchFor(static_cast<const __nv_bfloat16*>(vectors.data));
    }
}

} // namespace faiss_bits
