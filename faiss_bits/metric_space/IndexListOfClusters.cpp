#include "faiss_bits/metric_space/IndexListOfClusters.h"

#include "faiss_bits/metric_space/MetricOptions.h"

namespace faiss_bits {

IndexListOfClusters::IndexListOfClusters(
        int d,
        faiss::MetricType metric,
        int bucketSize,
        uint64_t seed)
        : IndexMetricSpace(detail::listContents(d, metric, bucketSize, seed)) {}

int IndexListOfClusters::bucketSize() const {
    return contents_().listOptions.bucketSize;
}

idx_t IndexListOfClusters::numClusters() const {
    return idx_t(contents_().list.centers.size());
}

} // namespace faiss_bits
