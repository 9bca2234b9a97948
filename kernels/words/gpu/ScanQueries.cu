#include "kernels/words/gpu/ScanQueries.cuh"

namespace faiss_bits::words {

namespace {

template <class T, ScanMethod Method>
void launchScan(const ScanParams& params, dim3 grid, cudaStream_t stream) {
    const size_t bytes =
            sizeof(T) * params.numLetters + scanSharedBytes(Method, params);
    const auto kernel = scanQueriesKernel<T, Method>;
    allowSharedBytes(kernel, bytes);
    kernel<<<grid, kScanThreads, bytes, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class T>
void launchScan(
        ScanMethod method,
        const ScanParams& params,
        dim3 grid,
        cudaStream_t stream) {
    switch (method) {
        case ScanMethod::All:
            return launchScan<T, ScanMethod::All>(params, grid, stream);
        case ScanMethod::Clusters:
            return launchScan<T, ScanMethod::Clusters>(params, grid, stream);
        case ScanMethod::Pivots:
            return launchScan<T, ScanMethod::Pivots>(params, grid, stream);
    }
}

} // namespace

void launchQueryScan(
        const ScanParams& params,
        Method method,
        bool isWide,
        idx_t count,
        uint32_t parts,
        cudaStream_t stream) {
    const dim3 grid(unsigned(count), parts);
    if (isWide) {
        launchScan<uint64_t>(scanOf(method), params, grid, stream);
    } else {
        launchScan<uint32_t>(scanOf(method), params, grid, stream);
    }
}

} // namespace faiss_bits::words
