/// The least float32 value of every short strip of vectors, for every query.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/nearest/FewDimsBound.h"
#include "kernels/knn/nearest/FewDimsStage.cuh"
#include "kernels/knn/nearest/FewDimsTopKernels.h"

namespace faiss_bits {

/// Values are those of FewDimsScan.cuh, of strips so short that the k-th least
/// of them is near the k-th distance. A block has a unit of vectors and a tile
/// of queries.
template <Metric kMetric, int kDims>
class FewDimsTopScan {
   public:
    static constexpr uint32_t kMostUnit = kFewDimsTopStrips << kMostLogTopStrip;
    static constexpr int kQueries = kFewDimsTopQueries;
    static constexpr uint32_t kTile = kQueries * kFewDimsTopThreads;

    struct Shared {
        alignas(16) float vectors[kMostUnit * kFewDimsStride<kDims>];
        alignas(16) float norms[kMostUnit];
        float center[kDims];
        uint32_t greatest; // bits of the greatest norm
    };

    __device__ FewDimsTopScan(const FewDimsTopParams& params, Shared& shared)
            : params_(params), search_(params.scan), shared_(shared) {}

    __device__ __forceinline__ void run() {
        const uint32_t tiles = (search_.rows + kTile - 1) / kTile;
        firstRow_ = blockIdx.x % tiles * kTile;
        unit_ = blockIdx.x / tiles;
        stage();
        float factors[kQueries][kDims];
        float own[kQueries];
        load(factors, own);
        __syncthreads();
        float least[kQueries][kFewDimsTopStrips];
#pragma unroll
        for (uint32_t s = 0; s < kFewDimsTopStrips; ++s) {
            float ofStrip[kQueries];
            meetStrip(s, factors, ofStrip);
#pragma unroll
            for (int j = 0; j < kQueries; ++j) {
                least[j][s] = ofStrip[j];
            }
        }
        write(least, own);
    }

   private:
    static constexpr bool kIsL2 = kMetric == Metric::L2;

    __device__ __forceinline__ uint32_t rowOf(int j) const {
        return firstRow_ + j * kFewDimsTopThreads + threadIdx.x;
    }

    __device__ __forceinline__ void stage() {
        const uint32_t width = kFewDimsTopStrips << params_.logStrip;
        const int64_t begin = int64_t(unit_) * width;
        setCenter<kIsL2, kDims>(search_, begin, shared_);
        __syncthreads();
        stageVectors<kIsL2, kDims, kFewDimsTopThreads>(
                search_, begin, width, search_.n, shared_);
    }

    __device__ __forceinline__ void load(
            float (&factors)[kQueries][kDims],
            float (&own)[kQueries]) const {
#pragma unroll
        for (int j = 0; j < kQueries; ++j) {
            loadQuery<kMetric>(
                    search_, min(rowOf(j), search_.rows - 1), factors[j]);
            own[j] = 0;
#pragma unroll
            for (int c = 0; c < kDims; ++c) {
                if constexpr (kIsL2) {
                    factors[j][c] -= shared_.center[c];
                }
                own[j] = fmaf(factors[j][c], factors[j][c], own[j]);
            }
        }
    }

    __device__ __forceinline__ void meetStrip(
            uint32_t strip,
            const float (&factors)[kQueries][kDims],
            float (&least)[kQueries]) const {
#pragma unroll
        for (int j = 0; j < kQueries; ++j) {
            least[j] = INFINITY;
        }
        const uint32_t begin = strip << params_.logStrip;
        meetVectors<kIsL2>(
                shared_,
                begin,
                begin + (1u << params_.logStrip),
                factors,
                least);
    }

    __device__ __forceinline__ void write(
            const float (&least)[kQueries][kFewDimsTopStrips],
            const float (&own)[kQueries]) const {
        const float greatest = __uint_as_float(shared_.greatest);
#pragma unroll
        for (int j = 0; j < kQueries; ++j) {
            const uint32_t row = rowOf(j);
            const float error = fewDimsError<kMetric, kDims>(greatest, own[j]);
            const bool isFit = error < INFINITY;
            const auto below = [&](float value) {
                const float key = value + (kIsL2 ? own[j] : 0.0f);
                return isFit ? key - error : -INFINITY;
            };
            if (row < search_.rows) {
                const int64_t at = int64_t(row) * params_.units + unit_;
                params_.errors[at] = error;
                reinterpret_cast<float4*>(params_.least)[at] = make_float4(
                        below(least[j][0]),
                        below(least[j][1]),
                        below(least[j][2]),
                        below(least[j][3]));
            }
        }
    }

    const FewDimsTopParams& params_;
    const CertifiedParams& search_;
    uint32_t firstRow_ = 0;
    uint32_t unit_ = 0;
    Shared& shared_;
};

template <Metric kMetric, int kDims>
__global__ __launch_bounds__(kFewDimsTopThreads, 4) void fewDimsTopScanKernel(
        const __grid_constant__ FewDimsTopParams params) {
    using Scan = FewDimsTopScan<kMetric, kDims>;
    __shared__ typename Scan::Shared shared;
    allowNext();
    waitForPrevious();
    Scan(params, shared).run();
}

} // namespace faiss_bits
