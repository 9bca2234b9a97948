#include "kernels/knn/filter/FilterColumns.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr idx_t kMaxBlocks = 1 << 16; // the kernels stride over the rest

unsigned blocksFor(idx_t threads) {
    return unsigned(std::clamp<idx_t>(
            (threads + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

__device__ float nan() {
    return __uint_as_float(0x7FFFFFFFu);
}

__global__ void allowedBiasKernel(
        const uint32_t* allowedBits,
        const float* norms,
        idx_t first,
        idx_t count,
        float* bias) {
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
         i += idx_t(gridDim.x) * kThreads) {
        const idx_t vector = first + i;
        const bool allowed = (allowedBits[vector / 32] >> (vector % 32)) & 1;
        bias[i] = !allowed ? nan() : norms ? norms[vector] : 0.0f;
    }
}

__global__ void listedBiasKernel(
        const int32_t* ids,
        const float* norms,
        bool byColumn,
        idx_t count,
        float* bias) {
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
         i += idx_t(gridDim.x) * kThreads) {
        const idx_t id = ids[i];
        bias[i] = id < 0 ? nan() : norms ? norms[byColumn ? i : id] : 0.0f;
    }
}

/// Blocks of y take rows, threads of x columns; both stride over the rest.
__global__ void maskValuesKernel(
        const uint32_t* allowedBits,
        idx_t first,
        idx_t count,
        idx_t rows,
        float* values,
        idx_t stride) {
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
         i += idx_t(gridDim.x) * kThreads) {
        const idx_t vector = first + i;
        if ((allowedBits[vector / 32] >> (vector % 32)) & 1) {
            continue;
        }
        for (idx_t row = blockIdx.y; row < rows; row += gridDim.y) {
            values[row * stride + i] = nan();
        }
    }
}

__global__ void widenIdsKernel(const int32_t* ids, idx_t count, idx_t* out) {
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < count;
         i += idx_t(gridDim.x) * kThreads) {
        out[i] = ids[i];
    }
}

/// `Lanes` lanes a row of words.
template <class Word, int Lanes>
__global__ void gatherRowsKernel(
        const Word* vectors,
        idx_t words,
        const int32_t* ids,
        idx_t count,
        idx_t width,
        Word* out) {
    const int lane = threadIdx.x % Lanes;
    const idx_t step = idx_t(gridDim.x) * (kThreads / Lanes);
    for (idx_t row =
                 idx_t(blockIdx.x) * (kThreads / Lanes) + threadIdx.x / Lanes;
         row < width;
         row += step) {
        const idx_t id = row < count ? ids[row] : -1;
        for (idx_t w = lane; w < words; w += Lanes) {
            Word value = {};
            if (id >= 0) {
                value = vectors[id * words + w];
            }
            out[row * words + w] = value;
        }
    }
}

template <class Word>
void gatherWords(
        const void* vectors,
        size_t rowBytes,
        const int32_t* ids,
        idx_t count,
        idx_t width,
        void* out,
        cudaStream_t stream) {
    const idx_t words = rowBytes / sizeof(Word);
    const auto launch = [&](auto kernel, int lanes) {
        kernel<<<blocksFor(width * lanes), kThreads, 0, stream>>>(
                static_cast<const Word*>(vectors),
                words,
                ids,
                count,
                width,
                static_cast<Word*>(out));
    };
    if (words <= 4) {
        launch(gatherRowsKernel<Word, 4>, 4);
    } else if (words <= 8) {
        launch(gatherRowsKernel<Word, 8>, 8);
    } else {
        launch(gatherRowsKernel<Word, 32>, 32);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace

void runAllowedBias(
        const uint32_t* allowedBits,
        const float* norms,
        idx_t first,
        idx_t count,
        float* bias,
        cudaStream_t stream) {
    if (count == 0) {
        return;
    }
    allowedBiasKernel<<<blocksFor(count), kThreads, 0, stream>>>(
            allowedBits, norms, first, count, bias);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runListedBias(
        const int32_t* ids,
        const float* norms,
        bool byColumn,
        idx_t count,
        float* bias,
        cudaStream_t stream) {
    if (count == 0) {
        return;
    }
    listedBiasKernel<<<blocksFor(count), kThreads, 0, stream>>>(
            ids, norms, byColumn, count, bias);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runMaskValues(
        const uint32_t* allowedBits,
        idx_t first,
        idx_t count,
        idx_t rows,
        float* values,
        idx_t stride,
        cudaStream_t stream) {
    if (count == 0 || rows == 0) {
        return;
    }
    constexpr idx_t kMostRows = 64; // of blocks: a thread reads its bit once
    const dim3 blocks(
            blocksFor(count), unsigned(std::min<idx_t>(rows, kMostRows)));
    maskValuesKernel<<<blocks, kThreads, 0, stream>>>(
            allowedBits, first, count, rows, values, stride);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runWidenIds(
        const int32_t* ids,
        idx_t count,
        idx_t* out,
        cudaStream_t stream) {
    if (count == 0) {
        return;
    }
    widenIdsKernel<<<blocksFor(count), kThreads, 0, stream>>>(ids, count, out);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runGatherRows(
        const void* vectors,
        size_t rowBytes,
        const int32_t* ids,
        idx_t count,
        idx_t width,
        void* out,
        cudaStream_t stream) {
    if (width == 0) {
        return;
    }
    const size_t alignment = reinterpret_cast<uintptr_t>(vectors) | rowBytes;
    const auto gather = alignment % 16 == 0 ? gatherWords<uint4>
            : alignment % 4 == 0            ? gatherWords<uint32_t>
                                            : gatherWords<uint16_t>;
    gather(vectors, rowBytes, ids, count, width, out, stream);
}

} // namespace faiss_bits
