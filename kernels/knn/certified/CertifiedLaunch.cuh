/// The launches that CertifiedLaunch.h declares.
#pragma once

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DeviceTraits.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/certified/CertifiedLaunch.h"
#include "kernels/knn/certified/Rescore.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

/// Launches of several blocks a row, with the rows in y.
template <class Kernel>
void launchByRows(
        Kernel kernel,
        const CertifiedParams& params,
        int perBlock,
        cudaStream_t stream) {
    cudaLaunchConfig_t config = {};
    config.gridDim =
            dim3(unsigned((params.numCandidates + perBlock - 1) / perBlock),
                 std::min(params.rows, 65535u));
    config.blockDim = dim3(kRescoreThreads);
    config.stream = stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    const void* function = reinterpret_cast<const void*>(kernel);
    config.numAttrs = canWaitForPrevious(function) ? 1 : 0;
    void* arguments[] = {const_cast<CertifiedParams*>(&params)};
    BITS_CUDA_CHECK(cudaLaunchKernelExC(&config, function, arguments));
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

template <Metric kMetric>
void launchScanAgain(
        const ScanParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    const void* kernel =
            reinterpret_cast<const void*>(&scanAgainKernel<kMetric>);
    // All blocks are on the device together: they wait for one another.
    int perMultiprocessor = 0;
    BITS_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &perMultiprocessor, kernel, kScanThreads, 0));
    cudaLaunchConfig_t config = {};
    // A plan may have been made for another device.
    const int most = deviceTraits().multiprocessors;
    config.gridDim =
            dim3(unsigned(std::min(multiprocessors, most) * perMultiprocessor));
    config.blockDim = dim3(kScanThreads);
    config.stream = stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    void* arguments[] = {const_cast<ScanParams*>(&params)};
    BITS_CUDA_CHECK(cudaLaunchKernelExC(&config, kernel, arguments));
}

} // namespace faiss_bits
