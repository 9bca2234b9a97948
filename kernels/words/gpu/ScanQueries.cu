#include "kernels/words/gpu/ScanQueries.cuh"

#include "kernels/words/gpu/WordLaunch.h"

namespace faiss_bits::words {

namespace {

template <class T, ScanMethod Method>
void launchScan(const ScanParams& params, idx_t count, cudaStream_t stream) {
    const size_t bytes =
            sizeof(T) * params.numLetters + scanSharedBytes(Method, params);
    const auto kernel = scanQueriesKernel<T, Method>;
    allowSharedBytes(kernel, bytes);
    kernel<<<unsigned(count), kScanThreads, bytes, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

template <class T>
void launchScan(
        ScanMethod method,
        const ScanParams& params,
        idx_t count,
        cudaStream_t stream) {
    switch (method) {
        case ScanMethod::All:
            return launchScan<T, ScanMethod::All>(params, count, stream);
        case ScanMethod::Clusters:
            return launchScan<T, ScanMethod::Clusters>(params, count, stream);
        case ScanMethod::Pivots:
            return launchScan<T, ScanMethod::Pivots>(params, count, stream);
    }
}

} // namespace

void launchQueryScan(
        const ScanParams& params,
        Method method,
        bool isLong,
        idx_t count,
        cudaStream_t stream) {
    const ScanMethod how = method == Method::ListOfClusters
            ? ScanMethod::Clusters
            : method == Method::Sss ? ScanMethod::Pivots
                                    : ScanMethod::All;
    if (isLong) {
        launchScan<uint64_t>(how, params, count, stream);
    } else {
        launchScan<uint32_t>(how, params, count, stream);
    }
}

} // namespace faiss_bits::words
