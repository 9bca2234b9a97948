#include "kernels/knn/fused/SlotRows.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/certified/CanonicalPair.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

/// See SlotRows; SlotQuery.cuh undoes it.
__device__ __forceinline__ uint32_t slotWordOf(float value) {
    const uint32_t bits = __float_as_uint(value);
    return (bits & 0x80000000u) | (bits & 7) << 28 | (bits & 0x7fffffffu) >> 3;
}

/// Eight lanes a vector.
template <class T>
__global__ __launch_bounds__(kThreads) void slotRowsKernel(
        const T* vectors,
        int64_t rowStride,
        int64_t columnStride,
        int64_t n,
        int d,
        int steps,
        SlotRows rows) {
    const int lane = threadIdx.x % kPairLanes;
    const unsigned group = 0xffu
            << (threadIdx.x % kWarpSize / kPairLanes * kPairLanes);
    const int64_t step = int64_t(gridDim.x) * (kThreads / kPairLanes);
    for (int64_t v =
                 (int64_t(blockIdx.x) * kThreads + threadIdx.x) / kPairLanes;
         v < n;
         v += step) {
        bool isOdd = false;
        for (int s = 0; s < steps; ++s) {
            uint32_t pack[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int c = s * kSlotStep + i * kPairLanes + lane;
                const float value = c < d
                        ? toFloat(vectors[v * rowStride + c * columnStride])
                        : 0.0f;
                isOdd |= !(fabsf(value) < __builtin_huge_valf());
                pack[i] = slotWordOf(value);
            }
            reinterpret_cast<uint4*>(
                    rows.words)[(v * steps + s) * kPairLanes + lane] =
                    make_uint4(pack[0], pack[1], pack[2], pack[3]);
        }
        const unsigned odd = __ballot_sync(group, isOdd);
        if (lane == 0) {
            rows.areOdd[v] = odd != 0;
        }
    }
}

} // namespace

void launchSlotRows(
        const VectorsParams& vectors,
        int64_t n,
        int d,
        const SlotRows& rows,
        cudaStream_t stream) {
    constexpr int64_t kMostBlocks = 16384;
    constexpr int kPerBlock = kThreads / kPairLanes;
    const unsigned blocks = unsigned(std::clamp<int64_t>(
            (n + kPerBlock - 1) / kPerBlock, 1, kMostBlocks));
    const auto launchFor = [&]<class T>(const T* data) {
        slotRowsKernel<<<blocks, kThreads, 0, stream>>>(
                data,
                vectors.rowStride,
                vectors.columnStride,
                n,
                d,
                slotSteps(d),
                rows);
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
