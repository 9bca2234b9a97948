#include "benchs/FaissSelect.h"

#include <faiss/gpu/utils/BlockSelectKernel.cuh>
#include <faiss/gpu/utils/Tensor.cuh>
#include <faiss/gpu/utils/WarpSelectKernel.cuh>

namespace faiss_bits::bench {

namespace {

using gpu::ImplSize;

template <class T>
faiss::gpu::Tensor<T, 2, true> matrix(T* data, int64_t rows, int64_t cols) {
    return faiss::gpu::Tensor<T, 2, true>(
            data, {ImplSize(rows), ImplSize(cols)});
}

} // namespace

void runFaissBlockSelect(
        const float* keys,
        int64_t rows,
        int64_t cols,
        int k,
        float* outKeys,
        ImplSize* outIds,
        cudaStream_t stream) {
    auto in = matrix(const_cast<float*>(keys), rows, cols);
    auto out = matrix(outKeys, rows, k);
    auto ids = matrix(outIds, rows, k);
    faiss::gpu::runBlockSelect(in, out, ids, false, k, stream);
}

void runFaissWarpSelect(
        const float* keys,
        int64_t rows,
        int64_t cols,
        int k,
        float* outKeys,
        ImplSize* outIds,
        cudaStream_t stream) {
    auto in = matrix(const_cast<float*>(keys), rows, cols);
    auto out = matrix(outKeys, rows, k);
    auto ids = matrix(outIds, rows, k);
    faiss::gpu::runWarpSelect(in, out, ids, false, k, stream);
}

} // namespace faiss_bits::bench
