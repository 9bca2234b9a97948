#pragma once

#include <string>

#include <faiss/MetricType.h>

#include "kernels/cpu/Knn.h"
#include "kernels/cpu/Range.h"

namespace faiss_bits {

/// The kernels' name of METRIC_L2, INNER_PRODUCT, L1, Linf, Lp, Canberra,
/// BrayCurtis, JensenShannon or Jaccard. Throws FaissException naming any
/// other, or a metric_arg (the p of METRIC_Lp, not read for the others) that is
/// not a number above 0.
Metric fusedMetricOf(faiss::MetricType metric, double metricArg);

/// Exact k nearest neighbours on the CPU without an index: cpu::runKnn
/// (kernels/cpu/Knn.h has shapes, order, cost and limits) with FAISS's
/// manners.
///
/// Errors   FaissException where the kernels throw Error, same text
/// Interrupts  faiss::InterruptCallback is asked now and then, unless the
///          problem brings its own `interrupt`; FaissException if it says so,
///          with the outputs undefined
void bfKnnFused(cpu::KnnProblem<float> problem);
/// The same in float64.
void bfKnnFused(cpu::KnnProblem<double> problem);

/// All vectors nearer than a radius: cpu::runRange, with the same manners.
cpu::RangeResult<float> bfRangeFused(cpu::Problem<float> problem, float radius);
/// The same in float64.
cpu::RangeResult<double> bfRangeFused(
        cpu::Problem<double> problem,
        double radius);

/// What bfKnnFused would do, in one line: variant, blocks, instruction set,
/// threads and the predicted time. Pointers are not read.
std::string fusedPlanText(const cpu::KnnProblem<float>& problem);
/// The same in float64.
std::string fusedPlanText(const cpu::KnnProblem<double>& problem);

} // namespace faiss_bits
