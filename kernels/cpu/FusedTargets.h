#pragma once

#include <string>

#include "kernels/cpu/FusedTypes.h"

namespace faiss_bits {

/// Highway's bit for an instruction set of fusedTargets(). Empty: what the
/// environment's FAISS_BITS_CPU_TARGET names, or else the best of this machine.
/// Throws Error with the list for a name that is not on it.
int64_t fusedTargetOf(const std::string& name);
std::string nameOfTarget(int64_t target);

/// The kernels compiled for a target. Instances: kernels/cpu/CMakeLists.txt.
template <class T>
FusedCommonKernels<T> fusedCommonKernels(int64_t target);
template <class T, FusedKernelMetric kMetric>
FusedMetricKernels<T> fusedMetricKernels(int64_t target);

/// The same for a metric that is known at run time.
template <class T>
FusedMetricKernels<T> fusedMetricKernels(
        FusedKernelMetric metric,
        int64_t target);

} // namespace faiss_bits
