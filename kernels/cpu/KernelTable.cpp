#include "kernels/cpu/KernelTable.h"

#include "kernels/common/Error.h"
#include "kernels/cpu/CanonicalTypes.h"

namespace faiss_bits::cpu {

template <class T>
MetricKernels<T> metricKernelsFor(KernelMetric metric, int64_t target) {
    switch (metric) {
        case KernelMetric::L2:
            return metricKernelsFor<T, KernelMetric::L2>(target);
        case KernelMetric::Product:
            return metricKernelsFor<T, KernelMetric::Product>(target);
        case KernelMetric::Cosine:
            return metricKernelsFor<T, KernelMetric::Cosine>(target);
        case KernelMetric::L1:
            return metricKernelsFor<T, KernelMetric::L1>(target);
        case KernelMetric::Linf:
            return metricKernelsFor<T, KernelMetric::Linf>(target);
        case KernelMetric::Squares:
            return metricKernelsFor<T, KernelMetric::Squares>(target);
        case KernelMetric::Power:
            return metricKernelsFor<T, KernelMetric::Power>(target);
        default: {
            // Of the metrics that are always canonical.
            MetricKernels<T> kernels;
            kernels.runTiles = canonicalKernelsFor<T>(metric, target).runTiles;
            return kernels;
        }
    }
}

template <class T>
CanonicalKernels<T> canonicalKernelsFor(KernelMetric metric, int64_t target) {
    switch (metric) {
        case KernelMetric::L2:
        case KernelMetric::Squares:
            return canonicalKernelsFor<T, KernelMetric::Squares>(target);
        case KernelMetric::Product:
            return canonicalKernelsFor<T, KernelMetric::Product>(target);
        case KernelMetric::Cosine:
            return canonicalKernelsFor<T, KernelMetric::Cosine>(target);
        case KernelMetric::L1:
            return canonicalKernelsFor<T, KernelMetric::L1>(target);
        case KernelMetric::Linf:
            return canonicalKernelsFor<T, KernelMetric::Linf>(target);
        case KernelMetric::Power:
            return canonicalKernelsFor<T, KernelMetric::Power>(target);
        case KernelMetric::Canberra:
            return canonicalKernelsFor<T, KernelMetric::Canberra>(target);
        case KernelMetric::BrayCurtis:
            return canonicalKernelsFor<T, KernelMetric::BrayCurtis>(target);
        case KernelMetric::JensenShannon:
            return canonicalKernelsFor<T, KernelMetric::JensenShannon>(target);
        case KernelMetric::Jaccard:
            return canonicalKernelsFor<T, KernelMetric::Jaccard>(target);
    }
    throw Error(formatMessage("metric %d is not known", int(metric)));
}

template MetricKernels<float> metricKernelsFor(KernelMetric, int64_t);
template MetricKernels<double> metricKernelsFor(KernelMetric, int64_t);
template CanonicalKernels<float> canonicalKernelsFor(KernelMetric, int64_t);
template CanonicalKernels<double> canonicalKernelsFor(KernelMetric, int64_t);

} // namespace faiss_bits::cpu
