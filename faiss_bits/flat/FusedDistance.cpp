#include "faiss_bits/flat/FusedDistance.h"

#include <cmath>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissErrors.h"

namespace faiss_bits {

namespace {

/// InterruptCallback::check, for calls from several threads at once.
void throwIfInterrupted() {
    if (faiss::InterruptCallback::is_interrupted()) {
        FAISS_THROW_MSG("computation interrupted");
    }
}

template <class Problem>
void askForInterrupts(Problem& problem) {
    if (!problem.interrupt) {
        problem.interrupt = throwIfInterrupted;
    }
}

template <class T>
void knn(FusedKnnProblem<T>& problem) {
    askForInterrupts(problem);
    detail::withFaissErrors([&] { runFusedKnn(problem); });
}

template <class T>
FusedRangeResult<T> range(FusedProblem<T>& problem, T radius) {
    askForInterrupts(problem);
    return detail::withFaissErrors(
            [&] { return runFusedRange(problem, radius); });
}

template <class T>
std::string planText(const FusedKnnProblem<T>& problem) {
    return detail::withFaissErrors(
            [&] { return toString(planFusedKnn(problem)); });
}

} // namespace

std::optional<FusedMetric> findFusedMetric(faiss::MetricType metric) {
    switch (metric) {
        case faiss::METRIC_L2:
            return FusedMetric::L2;
        case faiss::METRIC_INNER_PRODUCT:
            return FusedMetric::InnerProduct;
        case faiss::METRIC_L1:
            return FusedMetric::L1;
        case faiss::METRIC_Linf:
            return FusedMetric::Linf;
        case faiss::METRIC_Lp:
            return FusedMetric::Lp;
        default:
            return {};
    }
}

FusedMetric fusedMetricOf(faiss::MetricType metric, double metricArg) {
    const std::optional<FusedMetric> found = findFusedMetric(metric);
    FAISS_THROW_IF_NOT_FMT(
            found,
            "metric = %d is not supported: METRIC_INNER_PRODUCT (%d), "
            "METRIC_L2 (%d), METRIC_L1 (%d), METRIC_Linf (%d) and METRIC_Lp "
            "(%d) are",
            int(metric),
            int(faiss::METRIC_INNER_PRODUCT),
            int(faiss::METRIC_L2),
            int(faiss::METRIC_L1),
            int(faiss::METRIC_Linf),
            int(faiss::METRIC_Lp));
    FAISS_THROW_IF_NOT_FMT(
            found != FusedMetric::Lp ||
                    (metricArg > 0 && std::isfinite(metricArg)),
            "metric_arg = %g: the p of METRIC_Lp must be a number above 0",
            metricArg);
    return *found;
}

void bfKnnFused(FusedKnnProblem<float> problem) {
    knn(problem);
}

void bfKnnFused(FusedKnnProblem<double> problem) {
    knn(problem);
}

FusedRangeResult<float> bfRangeFused(
        FusedProblem<float> problem,
        float radius) {
    return range(problem, radius);
}

FusedRangeResult<double> bfRangeFused(
        FusedProblem<double> problem,
        double radius) {
    return range(problem, radius);
}

std::string fusedPlanText(const FusedKnnProblem<float>& problem) {
    return planText(problem);
}

std::string fusedPlanText(const FusedKnnProblem<double>& problem) {
    return planText(problem);
}

} // namespace faiss_bits
