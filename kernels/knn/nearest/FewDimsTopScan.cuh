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
    /// Floats of a vector: sixteen bytes are read at a time.
    static constexpr int kStride = kDims > 4 ? (kDims + 3) / 4 * 4 : kDims;
    static constexpr int kQueries = kFewDimsTopQueries;
    static constexpr uint32_t kTile = kQueries * kFewDimsTopThreads;

    struct Shared {
        alignas(16) float vectors[kMostUnit * kStride];
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

    /// Vectors less the first, by L2 times -2, and their norms; beyond the end
    /// NaN, which no minimum notices.
    __device__ __forceinline__ void stage() {
        const uint32_t width = kFewDimsTopStrips << params_.logStrip;
        const int64_t begin = int64_t(unit_) * width;
        if (threadIdx.x < kDims) {
            const int c = threadIdx.x;
            const float x = kIsL2 && c < search_.d
                    ? componentOf(search_.vectors, begin, c)
                    : 0.0f;
            // One that is no number would hide all vectors.
            shared_.center[c] = isfinite(x) ? x : 0.0f;
        }
        if (threadIdx.x == 0) {
            shared_.greatest = 0;
        }
        __syncthreads();
        float greatest = 0;
        for (uint32_t i = threadIdx.x; i < width; i += kFewDimsTopThreads) {
            float y[kDims];
            if (begin + i < search_.n) {
                loadVector(search_, begin + i, y);
            } else {
#pragma unroll
                for (int c = 0; c < kDims; ++c) {
                    y[c] = NAN;
                }
            }
            float norm = 0;
#pragma unroll
            for (int c = 0; c < kDims; ++c) {
                if constexpr (kIsL2) {
                    y[c] -= shared_.center[c];
                }
                norm = fmaf(y[c], y[c], norm);
                shared_.vectors[i * kStride + c] = kIsL2 ? -2 * y[c] : y[c];
            }
            shared_.norms[i] = norm;
            greatest = fmaxf(greatest, norm);
        }
        // Numbers from zero on are ordered as their bits.
        const uint32_t ofWarp =
                __reduce_max_sync(kFullWarp, __float_as_uint(greatest));
        if (threadIdx.x % kWarpSize == 0) {
            atomicMax(&shared_.greatest, ofWarp);
        }
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
        constexpr int kAtOnce = 4;
#pragma unroll
        for (int j = 0; j < kQueries; ++j) {
            least[j] = INFINITY;
        }
        const uint32_t width = 1u << params_.logStrip;
        const uint32_t begin = strip << params_.logStrip;
#pragma unroll 1
        for (uint32_t i = begin; i < begin + width; i += kAtOnce) {
            float norms[kAtOnce] = {};
            if constexpr (kIsL2) {
                readFloats(shared_.norms + i, norms);
            }
#pragma unroll
            for (int v = 0; v < kAtOnce; ++v) {
                float y[kDims];
                readFloats(shared_.vectors + (i + v) * kStride, y);
#pragma unroll
                for (int j = 0; j < kQueries; ++j) {
                    float value = kIsL2 ? fmaf(y[0], factors[j][0], norms[v])
                                        : y[0] * factors[j][0];
#pragma unroll
                    for (int c = 1; c < kDims; ++c) {
                        value = fmaf(y[c], factors[j][c], value);
                    }
                    least[j] = fminf(least[j], value);
                }
            }
        }
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
