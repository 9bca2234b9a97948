#include "faiss_bits/flat/FusedDistance.h"

#include <cmath>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissErrors.h"
#include "faiss_bits/common/FaissMetric.h"
#include "faiss_bits/common/Interrupt.h"
#include "faiss_bits/common/PlanLog.h"
#include "faiss_bits/common/PlanText.h"

namespace faiss_bits {

namespace {

template <class Problem>
void askForInterrupts(Problem& problem) {
    if (!problem.interrupt) {
        problem.interrupt = detail::throwIfInterrupted;
    }
}

template <class T>
void logKnn(const cpu::KnnProblem<T>& problem) {
    const auto shape = [&] {
        return detail::searchShapeText(
                "CPU search",
                problem.numQueries,
                problem.numVectors,
                problem.d,
                problem.k,
                problem.metric,
                sizeof(T) == sizeof(float) ? "float32" : "float64",
                problem.mode);
    };
    detail::logPlan(shape, [&] { return toString(cpu::planKnn(problem)); });
}

template <class T>
void knn(cpu::KnnProblem<T>& problem) {
    askForInterrupts(problem);
    detail::withFaissErrors([&] {
        logKnn(problem);
        cpu::runKnn(problem);
    });
}

template <class T>
cpu::RangeResult<T> range(cpu::Problem<T>& problem, T radius) {
    askForInterrupts(problem);
    return detail::withFaissErrors(
            [&] { return cpu::runRange(problem, radius); });
}

template <class T>
std::string planText(const cpu::KnnProblem<T>& problem) {
    return detail::withFaissErrors(
            [&] { return toString(cpu::planKnn(problem)); });
}

} // namespace

Metric fusedMetricOf(faiss::MetricType metric, double metricArg) {
    const Metric known = detail::knownMetric(metric);
    FAISS_THROW_IF_NOT_FMT(
            known != Metric::Lp || (metricArg > 0 && std::isfinite(metricArg)),
            "metric_arg = %g: the p of METRIC_Lp must be a number above 0",
            metricArg);
    return known;
}

void bfKnnFused(cpu::KnnProblem<float> problem) {
    knn(problem);
}

void bfKnnFused(cpu::KnnProblem<double> problem) {
    knn(problem);
}

cpu::RangeResult<float> bfRangeFused(
        cpu::Problem<float> problem,
        float radius) {
    return range(problem, radius);
}

cpu::RangeResult<double> bfRangeFused(
        cpu::Problem<double> problem,
        double radius) {
    return range(problem, radius);
}

std::string fusedPlanText(const cpu::KnnProblem<float>& problem) {
    return planText(problem);
}

std::string fusedPlanText(const cpu::KnnProblem<double>& problem) {
    return planText(problem);
}

} // namespace faiss_bits
