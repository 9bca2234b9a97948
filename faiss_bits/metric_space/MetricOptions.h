#pragma once

#include "faiss_bits/common/FaissErrors.h"
#include "faiss_bits/metric_space/MetricContents.h"
#include "kernels/metric_space/MetricChecks.h"

/// What the constructors of the indexes for metric spaces check. Not part of
/// the API.
namespace faiss_bits::detail {

inline MetricContents emptyContents(int d, faiss::MetricType metric) {
    requirePositive(d, "d");
    MetricContents contents;
    contents.d = d;
    contents.metric = trueMetricOf(metric);
    return contents;
}

/// Of an empty List of Clusters; throws FaissException naming what is wrong.
inline MetricContents listContents(
        int d,
        faiss::MetricType metric,
        int bucketSize,
        uint64_t seed) {
    MetricContents contents = emptyContents(d, metric);
    contents.kind = MetricIndexKind::ListOfClusters;
    contents.listOptions.bucketSize = bucketSize;
    contents.listOptions.seed = seed;
    withFaissErrors([&] { metric_space::checkOptions(contents.listOptions); });
    return contents;
}

/// The same of SSS.
inline MetricContents sssContents(
        int d,
        faiss::MetricType metric,
        double alpha,
        int maxPivots) {
    MetricContents contents = emptyContents(d, metric);
    contents.kind = MetricIndexKind::Sss;
    contents.pivotOptions.alpha = alpha;
    contents.pivotOptions.maxPivots = maxPivots;
    withFaissErrors([&] { metric_space::checkOptions(contents.pivotOptions); });
    return contents;
}

} // namespace faiss_bits::detail
