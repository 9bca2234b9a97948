#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

/// Enqueue the steps around a fused scan. kernels/CMakeLists.txt lists the
/// instances.
/// Writes params.values: canonical distances, of up to kFewQueries rows.
template <Metric kMetric>
void launchSampleFew(const SampleLimitParams& params, cudaStream_t stream);

template <Metric kMetric>
void launchSampleLimits(const SampleLimitParams& params, cudaStream_t stream);

template <Metric kMetric>
void launchGivenLimits(const GivenLimitParams& params, cudaStream_t stream);

template <Metric kMetric>
void launchCloserLimits(const CloserLimitParams& params, cudaStream_t stream);

template <Metric kMetric>
void launchScorePassed(
        const PassedParams& params,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits
