#include "faiss_bits/metric_space/GpuIndexBitsSSS.h"

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/metric_space/IndexSSS.h"
#include "faiss_bits/metric_space/MetricOptions.h"

namespace faiss_bits::gpu {

using detail::requireNotNull;

namespace {

const IndexSSS* checked(const IndexSSS* index) {
    requireNotNull(index, "index");
    return index;
}

} // namespace

GpuIndexBitsSSS::GpuIndexBitsSSS(
        faiss::gpu::GpuResourcesProvider* provider,
        int dims,
        faiss::MetricType metric,
        double alpha,
        int maxPivots,
        faiss::gpu::GpuIndexConfig config)
        : GpuIndexBitsMetricSpace(
                  detail::resourcesOf(provider),
                  faiss_bits::detail::sssContents(
                          dims,
                          metric,
                          alpha,
                          maxPivots),
                  config) {}

GpuIndexBitsSSS::GpuIndexBitsSSS(
        faiss::gpu::GpuResourcesProvider* provider,
        const IndexSSS* index,
        faiss::gpu::GpuIndexConfig config)
        : GpuIndexBitsSSS(
                  provider,
                  int(checked(index)->d),
                  checked(index)->metric_type,
                  checked(index)->alpha(),
                  1,
                  config) {
    copyFrom(index);
}

void GpuIndexBitsSSS::copyFrom(const IndexSSS* index) {
    copyFrom_(*checked(index));
}

void GpuIndexBitsSSS::copyTo(IndexSSS* index) const {
    requireNotNull(index, "index");
    copyTo_(*index);
}

double GpuIndexBitsSSS::alpha() const {
    return options_().pivotOptions.alpha;
}

int GpuIndexBitsSSS::maxPivots() const {
    return options_().pivotOptions.maxPivots;
}

idx_t GpuIndexBitsSSS::numPivots() const {
    return idx_t(options_().table.pivots.size());
}

} // namespace faiss_bits::gpu
