/// The least float32 value of every strip of vectors, for every query.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/nearest/FewDimsBound.h"
#include "kernels/knn/nearest/FewDimsStage.cuh"

namespace faiss_bits {

template <int kDims>
struct FewDimsScanShared {
    alignas(16) float vectors[kFewDimsUnit * kFewDimsStride<kDims>];
    alignas(16) float norms[kFewDimsUnit];
    float center[kDims];
    uint32_t greatest; // bits of the greatest norm
};

/// A block has kQueries queries of each thread, and strips one after another; a
/// thread keeps its queries and their least values in registers, and all meet
/// the same vector. A pair takes kDims multiply-adds and a minimum.
template <Metric kMetric, int kDims, int kQueries, bool kAgain>
class FewDimsScan {
   public:
    using Shared = FewDimsScanShared<kDims>;
    static constexpr uint32_t kSlots = kQueries * kFewDimsThreads;

    __device__ FewDimsScan(
            const FewDimsParams& params,
            uint32_t slots,
            Shared& shared)
            : params_(params),
              search_(params.search),
              slots_(slots),
              shared_(shared) {}

    /// All slots and strips, so many strips at a time.
    __device__ __forceinline__ void run(uint32_t stripsAtOnce) {
        const uint32_t tiles = (slots_ + kSlots - 1) / kSlots;
        const uint32_t groups =
                (params_.strips + stripsAtOnce - 1) / stripsAtOnce;
        for (uint32_t i = blockIdx.x; i < tiles * groups; i += gridDim.x) {
            firstSlot_ = i % tiles * kSlots;
            const uint32_t first = i / tiles * stripsAtOnce;
            runStrips(first, min(first + stripsAtOnce, params_.strips));
        }
    }

   private:
    static constexpr bool kIsL2 = kMetric == Metric::L2;

    __device__ __forceinline__ void runStrips(uint32_t first, uint32_t end) {
        float limits[kQueries];
#pragma unroll
        for (int j = 0; j < kQueries; ++j) {
            limits[j] = INFINITY;
        }
        for (uint32_t strip = first; strip < end; ++strip) {
            runStrip(strip, limits);
        }
#pragma unroll
        for (int j = 0; j < kQueries; ++j) {
            if (slotOf(j) < slots_ && limits[j] < INFINITY) {
                atomicMin(params_.limits + slotOf(j), orderedKey(limits[j]));
            }
        }
    }

    __device__ __forceinline__ uint32_t slotOf(int j) const {
        return firstSlot_ + j * kFewDimsThreads + threadIdx.x;
    }

    __device__ __forceinline__ void runStrip(
            uint32_t strip,
            float (&limits)[kQueries]) {
        const int64_t units = int64_t(1) << params_.logUnits;
        const int64_t begin = strip * units * kFewDimsUnit;
        const int64_t end = min(begin + units * kFewDimsUnit, search_.n);
        __syncthreads(); // the strip before is done with
        setCenter<kIsL2, kDims>(search_, begin, shared_);
        __syncthreads();
        float factors[kQueries][kDims];
        float own[kQueries];
        float least[kQueries];
#pragma unroll
        for (int j = 0; j < kQueries; ++j) {
            loadQuery<kMetric>(
                    search_,
                    rowOfSlot<kAgain>(params_, min(slotOf(j), slots_ - 1)),
                    factors[j]);
            own[j] = 0;
#pragma unroll
            for (int c = 0; c < kDims; ++c) {
                if constexpr (kIsL2) {
                    factors[j][c] -= shared_.center[c];
                }
                own[j] = fmaf(factors[j][c], factors[j][c], own[j]);
            }
            least[j] = INFINITY;
        }
        for (int64_t unit = begin; unit < end; unit += kFewDimsUnit) {
            stageVectors<kIsL2, kDims, kFewDimsThreads>(
                    search_, unit, kFewDimsUnit, end, shared_);
            __syncthreads();
            // In a first search all have, but for those of the last tile.
            if (!kAgain || slotOf(0) / kWarpSize * kWarpSize < slots_) {
                meetVectors<kIsL2>(shared_, 0u, kFewDimsUnit, factors, least);
            }
            __syncthreads();
        }
        const float greatest = __uint_as_float(shared_.greatest);
#pragma unroll
        for (int j = 0; j < kQueries; ++j) {
            const float error = fewDimsError<kMetric, kDims>(greatest, own[j]);
            const bool isFit = error < INFINITY;
            const float value = least[j] + (kIsL2 ? own[j] : 0.0f);
            if (slotOf(j) < slots_) {
                params_.least[int64_t(strip) * search_.rows + slotOf(j)] =
                        isFit ? value - error : -INFINITY;
            }
            if (isFit) {
                limits[j] = fminf(limits[j], value + error);
            }
        }
    }

    const FewDimsParams& params_;
    const CertifiedParams& search_;
    const uint32_t slots_;
    uint32_t firstSlot_ = 0;
    Shared& shared_;
};

template <Metric kMetric, int kDims, int kQueries>
__global__ __launch_bounds__(
        kFewDimsThreads,
        fewDimsBlocks(
                kDims,
                kQueries)) void fewDimsScanKernel(const __grid_constant__
                                                          FewDimsParams
                                                                  params) {
    __shared__ FewDimsScanShared<kDims> shared;
    allowNext();
    waitForPrevious();
    FewDimsScan<kMetric, kDims, kQueries, false>(
            params, params.search.rows, shared)
            .run(params.stripsOfBlock);
}

} // namespace faiss_bits
