#pragma once

#include "kernels/cpu/KernelTypes.h"

namespace faiss_bits::cpu {

/// The kernels compiled for a target. Instances: kernels/cpu/CMakeLists.txt.
template <class T>
CommonKernels<T> commonKernelsFor(int64_t target);
template <class T, KernelMetric kMetric>
MetricKernels<T> metricKernelsFor(int64_t target);

/// The same for a metric that is known at run time.
template <class T>
MetricKernels<T> metricKernelsFor(KernelMetric metric, int64_t target);

} // namespace faiss_bits::cpu
