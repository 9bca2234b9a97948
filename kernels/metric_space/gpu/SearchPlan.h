#pragma once

#include "kernels/metric_space/MetricSearch.h"

/// What the plans and the runs of MetricSearch.h agree on.
namespace faiss_bits::metric_space {

/// Queries at a time, at most.
constexpr idx_t kMostRows = idx_t(1) << 20;

// Each throws Error that names what is wrong.
void checkProblem(const MetricSearchProblem& problem, bool isKnn);
void checkFirstStage(const MetricSearchProblem& problem);
void checkRange(const MetricSearchProblem& problem, float radius);
/// Of groupBits.
void checkStride(const MetricSearchProblem& problem, uint32_t stride);

/// runMetricRange by the bits of a plan. limit: the greatest distance of a
/// result.
void runRangeByBits(
        const MetricSearchPlan& plan,
        const MetricSearchProblem& problem,
        float limit,
        Workspace workspace,
        cudaStream_t stream,
        const std::function<void(const MetricRangePart&)>& take,
        MetricCounters* counters,
        const MetricRoom& room);

} // namespace faiss_bits::metric_space
