#include "kernels/cpu/FusedTargets.h"

#include <hwy/highway.h>

#include <cstdlib>

#include "kernels/common/Error.h"
#include "kernels/cpu/FusedPlan.h"

namespace faiss_bits {

namespace {

int64_t availableTargets() {
    // Asked once: every call asks the processor, which takes microseconds.
    static const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
    return targets;
}

int64_t lowestBit(int64_t bits) {
    return bits & -bits;
}

} // namespace

std::string nameOfTarget(int64_t target) {
    return hwy::TargetName(target);
}

std::vector<std::string> fusedTargets() {
    // Highway numbers its targets from the best on.
    std::vector<std::string> names;
    for (int64_t bits = availableTargets(); bits; bits &= bits - 1) {
        names.push_back(nameOfTarget(lowestBit(bits)));
    }
    return names;
}

int64_t fusedTargetOf(const std::string& name) {
    std::string wanted = name;
    const char* source = "target";
    if (wanted.empty()) {
        if (const char* value = std::getenv("FAISS_BITS_CPU_TARGET")) {
            wanted = value;
            source = "FAISS_BITS_CPU_TARGET";
        }
    }
    const int64_t available = availableTargets();
    if (wanted.empty()) {
        return lowestBit(available);
    }
    std::string names;
    for (int64_t bits = available; bits; bits &= bits - 1) {
        const int64_t target = lowestBit(bits);
        if (nameOfTarget(target) == wanted) {
            return target;
        }
        names += (names.empty() ? "" : ", ") + nameOfTarget(target);
    }
    throw Error(formatMessage(
            "%s '%s' is not an instruction set that is compiled in and that "
            "this machine has: %s",
            source,
            wanted.c_str(),
            names.c_str()));
}

template <class T>
FusedMetricKernels<T> fusedMetricKernels(
        FusedKernelMetric metric,
        int64_t target) {
    switch (metric) {
        case FusedKernelMetric::L2:
            return fusedMetricKernels<T, FusedKernelMetric::L2>(target);
        case FusedKernelMetric::Product:
            return fusedMetricKernels<T, FusedKernelMetric::Product>(target);
        case FusedKernelMetric::Cosine:
            return fusedMetricKernels<T, FusedKernelMetric::Cosine>(target);
        case FusedKernelMetric::L1:
            return fusedMetricKernels<T, FusedKernelMetric::L1>(target);
        case FusedKernelMetric::Linf:
            return fusedMetricKernels<T, FusedKernelMetric::Linf>(target);
        case FusedKernelMetric::Squares:
            return fusedMetricKernels<T, FusedKernelMetric::Squares>(target);
        case FusedKernelMetric::Power:
            return fusedMetricKernels<T, FusedKernelMetric::Power>(target);
    }
    throw Error(formatMessage("metric %d is not known", int(metric)));
}

template FusedMetricKernels<float> fusedMetricKernels(
        FusedKernelMetric,
        int64_t);
template FusedMetricKernels<double> fusedMetricKernels(
        FusedKernelMetric,
        int64_t);

} // namespace faiss_bits
