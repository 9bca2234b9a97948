/// The launches that CertifiedLaunch.h declares.
#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DeviceTraits.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/common/KernelLaunch.h"
#include "kernels/knn/certified/CertifiedLaunch.h"
#include "kernels/knn/certified/Rescore.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Launches of several blocks a row, with the rows in y.
inline void launchByRows(
        void (*kernel)(CertifiedParams),
        const CertifiedParams& params,
        int perBlock,
        cudaStream_t stream) {
    launchAfterPrevious(
            kernel,
            dim3(unsigned((params.numCandidates + perBlock - 1) / perBlock),
                 std::min(params.rows, 65535u)),
            kRescoreThreads,
            0,
            stream,
            params);
}

template <Metric kMetric>
void launchRescore(const CertifiedParams& params, cudaStream_t stream) {
    if (!params.entries) {
        const size_t bytes = sizeof(uint64_t) * params.numCandidates;
        launchAfterPrevious(
                rescoreRowKernel<kMetric>,
                params.rows,
                kRescoreThreads,
                allowSharedBytes(rescoreRowKernel<kMetric>, bytes),
                stream,
                params);
        return;
    }
    launchByRows(
            rescoreKernel<kMetric>,
            params,
            kRescoreThreads / kPairLanes,
            stream);
    launchByRows(rankKernel<kMetric>, params, kRescoreThreads, stream);
}

/// Neighbours in the order are far apart.
ScanOrder scatteredOrder(uint32_t chunks);

/// Blocks of a kernel that a multiprocessor of the current device holds. Asks
/// the runtime once for each kernel and device.
int blocksPerMultiprocessor(
        const void* kernel,
        int threads,
        size_t sharedBytes);

/// launchScanAgain() with blocks that begin as `Begin` says (BeginAtOnce).
template <Metric kMetric, class Begin>
void launchScan(
        const ScanAgainParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    using Scan = ScanAgain<kMetric, Begin>;
    const void* kernel =
            reinterpret_cast<const void*>(&scanAgainKernel<kMetric, Begin>);
    const size_t bytes = allowSharedBytes(
            scanAgainKernel<kMetric, Begin>,
            sizeof(typename Scan::SharedStorage));
    constexpr int kThreads = Scan::kThreads;
    // All blocks are on the device together: they wait for one another.
    const int perMultiprocessor =
            blocksPerMultiprocessor(kernel, kThreads, bytes);
    // A plan may have been made for another device.
    const int most = deviceTraits().multiprocessors;
    const unsigned blocks =
            unsigned(std::min(multiprocessors, most) * perMultiprocessor);
    constexpr int kChunk = Scan::kChunk;
    ScanAgainParams scattered = params;
    scattered.order =
            scatteredOrder(uint32_t((params.search.n + kChunk - 1) / kChunk));
    KernelLaunch(kernel, dim3(blocks), kThreads, bytes, stream)
            .cooperative()
            .early()
            .enqueue(scattered);
}

template <Metric kMetric>
void launchScanAgain(
        const ScanAgainParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    launchScan<kMetric, BeginAtOnce>(params, multiprocessors, stream);
}

} // namespace faiss_bits
