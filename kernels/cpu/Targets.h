#pragma once

#include <string>

#include "kernels/cpu/KernelTypes.h"

namespace faiss_bits::cpu {

/// Highway's bit for an instruction set of targetNames(). Empty: what the
/// environment's FAISS_BITS_CPU_TARGET names, or else the best of this machine.
/// Throws Error with the list for a name that is not on it.
int64_t targetOf(const std::string& name);
std::string nameOfTarget(int64_t target);

/// The kernels compiled for a target. Instances: kernels/cpu/CMakeLists.txt.
template <class T>
CommonKernels<T> commonKernelsFor(int64_t target);
template <class T, KernelMetric kMetric>
MetricKernels<T> metricKernelsFor(int64_t target);

/// The same for a metric that is known at run time.
template <class T>
MetricKernels<T> metricKernelsFor(KernelMetric metric, int64_t target);

} // namespace faiss_bits::cpu
