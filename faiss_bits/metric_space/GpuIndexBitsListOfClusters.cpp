#include "faiss_bits/metric_space/GpuIndexBitsListOfClusters.h"

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/metric_space/IndexListOfClusters.h"
#include "faiss_bits/metric_space/MetricOptions.h"

namespace faiss_bits::gpu {

using detail::requireNotNull;

namespace {

const IndexListOfClusters* checked(const IndexListOfClusters* index) {
    requireNotNull(index, "index");
    return index;
}

} // namespace

GpuIndexBitsListOfClusters::GpuIndexBitsListOfClusters(
        faiss::gpu::GpuResourcesProvider* provider,
        int dims,
        faiss::MetricType metric,
        int bucketSize,
        uint64_t seed,
        faiss::gpu::GpuIndexConfig config)
        : GpuIndexBitsMetricSpace(
                  detail::resourcesOf(provider),
                  faiss_bits::detail::listContents(
                          dims,
                          metric,
                          bucketSize,
                          seed),
                  config) {}

GpuIndexBitsListOfClusters::GpuIndexBitsListOfClusters(
        faiss::gpu::GpuResourcesProvider* provider,
        const IndexListOfClusters* index,
        faiss::gpu::GpuIndexConfig config)
        : GpuIndexBitsListOfClusters(
                  provider,
                  int(checked(index)->d),
                  checked(index)->metric_type,
                  checked(index)->bucketSize(),
                  1,
                  config) {
    copyFrom(index);
}

void GpuIndexBitsListOfClusters::copyFrom(const IndexListOfClusters* index) {
    copyFrom_(*checked(index));
}

void GpuIndexBitsListOfClusters::copyTo(IndexListOfClusters* index) const {
    requireNotNull(index, "index");
    copyTo_(*index);
}

int GpuIndexBitsListOfClusters::bucketSize() const {
    return options_().listOptions.bucketSize;
}

idx_t GpuIndexBitsListOfClusters::numClusters() const {
    return idx_t(options_().list.centers.size());
}

} // namespace faiss_bits::gpu
