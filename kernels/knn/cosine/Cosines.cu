#include "kernels/knn/cosine/Cosines.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/knn/pairwise/CanonicalPair.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kRowsOfBlock = 8; // queries that share a read of the facts

constexpr int kRowsAtOnce = 4; // whose loads are under way together

template <int Width>
struct alignas(Width * sizeof(float)) Columns {
    float values[Width];
};

/// Multiplies kRowsAtOnce rows of the columns from v on. True if all queries
/// are fit.
template <int Width>
__device__ __forceinline__ bool scaleRows(
        const PairwiseParams& params,
        idx_t firstQuery,
        idx_t v,
        const float (&ofVectors)[Width]) {
    Columns<Width> columns[kRowsAtOnce];
    float ofQueries[kRowsAtOnce];
    bool fit = true;
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
        const idx_t query = firstQuery + r;
        if (query < params.queries.count) {
            columns[r] = *reinterpret_cast<const Columns<Width>*>(
                    params.distances + query * params.distanceStride + v);
            ofQueries[r] = params.queries.facts[query];
            fit = fit && ofQueries[r] >= 0;
        }
    }
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
        const idx_t query = firstQuery + r;
        if (query < params.queries.count) {
#pragma unroll
            for (int i = 0; i < Width; ++i) {
                float& value = columns[r].values[i];
                value = __fmul_rn(__fmul_rn(value, ofQueries[r]), ofVectors[i]);
            }
            *reinterpret_cast<Columns<Width>*>(
                    params.distances + query * params.distanceStride + v) =
                    columns[r];
        }
    }
    return fit;
}

/// The canonical cosines of the pairs that are not fit. Not inlined: for data
/// that is rare.
__device__ __noinline__ void takeUnfit(
        const PairwiseParams& params,
        idx_t firstQuery,
        idx_t v,
        int width) {
    for (int at = 0; at < kRowsOfBlock * width; ++at) {
        const idx_t query = firstQuery + at / width;
        const idx_t vector = v + at % width;
        if (query < params.queries.count &&
            !(params.queries.facts[query] >= 0 &&
              params.vectors.facts[vector] >= 0)) {
            params.distances[query * params.distanceStride + vector] =
                    canonicalPair<Metric::Cosine>(
                            params.vectors,
                            vector,
                            params.queries,
                            query,
                            params.d);
        }
    }
}

/// Width columns from v on, of the block's queries.
template <int Width>
__device__ __forceinline__ void takeColumns(
        const PairwiseParams& params,
        idx_t firstQuery,
        idx_t v) {
    float ofVectors[Width];
    bool fit = true;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
        ofVectors[i] = params.vectors.facts[v + i];
        fit = fit && ofVectors[i] >= 0;
    }
#pragma unroll 1
    for (int r = 0; r < kRowsOfBlock; r += kRowsAtOnce) {
        const bool queriesFit =
                scaleRows<Width>(params, firstQuery + r, v, ofVectors);
        fit = fit && queriesFit;
    }
    if (fit) {
        return;
    }
    takeUnfit(params, firstQuery, v, Width);
}

template <int Width>
__global__ void __launch_bounds__(kThreads)
        cosinesKernel(const __grid_constant__ PairwiseParams params) {
    const idx_t columns = params.vectors.count;
    const idx_t firstQuery = idx_t(blockIdx.y) * kRowsOfBlock;
    for (idx_t v = (idx_t(blockIdx.x) * kThreads + threadIdx.x) * Width;
         v < columns;
         v += idx_t(gridDim.x) * kThreads * Width) {
        if (v + Width <= columns) {
            takeColumns<Width>(params, firstQuery, v);
        } else {
#pragma unroll 1
            for (idx_t one = v; one < columns; ++one) {
                takeColumns<1>(params, firstQuery, one);
            }
        }
    }
}

} // namespace

void runCosines(const PairwiseParams& params, cudaStream_t stream) {
    const idx_t queries = params.queries.count;
    const idx_t columns = params.vectors.count;
    if (queries == 0 || columns == 0) {
        return;
    }
    const int width = params.quadStores ? 4 : 1;
    const idx_t perBlock = idx_t(kThreads) * width;
    const auto kernel = width == 4 ? cosinesKernel<4> : cosinesKernel<1>;
    // The grid has at most 65535 rows of blocks.
    constexpr idx_t kMostQueries = idx_t(65535) * kRowsOfBlock;
    for (idx_t first = 0; first < queries; first += kMostQueries) {
        PairwiseParams part = params;
        part.queries.count = std::min(kMostQueries, queries - first);
        part.queries.facts += first;
        part.queries.data = static_cast<const uint8_t*>(params.queries.data) +
                first * params.queries.rowStride *
                        idx_t(sizeOf(params.queries.type));
        part.distances += first * params.distanceStride;
        const dim3
        grid(unsigned(std::min<idx_t>(
                     (columns + perBlock - 1) / perBlock, 1 << 20)),
             unsigned((part.queries.count + kRowsOfBlock - 1) / kRowsOfBlock));
        kernel<<<grid, kThreads, 0, stream>>>(part);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
}

} // namespace faiss_bits
