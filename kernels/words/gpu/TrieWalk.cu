#include "kernels/words/gpu/TrieWalk.cuh"

#include "kernels/words/gpu/GpuWords.h"

namespace faiss_bits::words {

namespace {

template <class T, int Errors, bool HasTable>
void launchWalk(const TrieParams& params, dim3 grid, cudaStream_t stream) {
    const size_t bytes = SameLetters<T, HasTable>::bytes(params.numLetters);
    const auto kernel = walkTrieKernel<T, Errors, HasTable>;
    allowSharedBytes(kernel, bytes);
    kernel<<<grid, kWalkWarps * 32, bytes, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class T, bool HasTable>
void launchWalk(const TrieParams& params, dim3 grid, cudaStream_t stream) {
    static_assert(GpuWords::kMostErrors == 4, "a case for each");
    switch (params.most) {
        case 0:
            return launchWalk<T, 0, HasTable>(params, grid, stream);
        case 1:
            return launchWalk<T, 1, HasTable>(params, grid, stream);
        case 2:
            return launchWalk<T, 2, HasTable>(params, grid, stream);
        case 3:
            return launchWalk<T, 3, HasTable>(params, grid, stream);
        default:
            return launchWalk<T, 4, HasTable>(params, grid, stream);
    }
}

} // namespace

void launchTrieWalk(
        const TrieParams& params,
        bool isWide,
        cudaStream_t stream) {
    const dim3 grid(
            (params.end - params.first + 31) / 32, params.parts / kWalkWarps);
    const auto fits = [&](size_t bytes) { return bytes <= kTableBytes; };
    if (!isWide &&
        fits(SameLetters<uint32_t, true>::bytes(params.numLetters))) {
        launchWalk<uint32_t, true>(params, grid, stream);
    } else if (fits(SameLetters<uint64_t, true>::bytes(params.numLetters))) {
        launchWalk<uint64_t, true>(params, grid, stream);
    } else {
        launchWalk<uint64_t, false>(params, grid, stream);
    }
}

} // namespace faiss_bits::words
