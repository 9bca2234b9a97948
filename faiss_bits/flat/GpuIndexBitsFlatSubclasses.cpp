// GpuIndexBitsFlatL2 and GpuIndexBitsFlatIP.

#include <utility>

#include <faiss/IndexFlat.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"

namespace faiss_bits::gpu {

using detail::requireNotNull;
using faiss::gpu::GpuResources;
using faiss::gpu::GpuResourcesProvider;

namespace {

/// `index`, if it exists and has the metric of the class.
template <class Index>
Index* withMetric(Index* index, faiss::MetricType metric, const char* name) {
    requireNotNull(index, "index");
    FAISS_THROW_IF_NOT_FMT(
            index->metric_type == metric,
            "index->metric_type = %d, but a %s has metric_type %d",
            int(index->metric_type),
            name,
            int(metric));
    return index;
}

} // namespace

//
// GpuIndexBitsFlatL2
//

GpuIndexBitsFlatL2::GpuIndexBitsFlatL2(
        GpuResourcesProvider* provider,
        const faiss::IndexFlatL2* index,
        GpuIndexBitsFlatConfig config)
        : GpuIndexBitsFlatL2(detail::resourcesOf(provider), index, config) {}

GpuIndexBitsFlatL2::GpuIndexBitsFlatL2(
        std::shared_ptr<GpuResources> resources,
        const faiss::IndexFlatL2* index,
        GpuIndexBitsFlatConfig config)
        : GpuIndexBitsFlat(
                  std::move(resources),
                  withMetric(index, faiss::METRIC_L2, "GpuIndexBitsFlatL2"),
                  config) {}

GpuIndexBitsFlatL2::GpuIndexBitsFlatL2(
        GpuResourcesProvider* provider,
        int dims,
        GpuIndexBitsFlatConfig config)
        : GpuIndexBitsFlat(provider, dims, faiss::METRIC_L2, config) {}

GpuIndexBitsFlatL2::GpuIndexBitsFlatL2(
        std::shared_ptr<GpuResources> resources,
        int dims,
        GpuIndexBitsFlatConfig config)
        : GpuIndexBitsFlat(
                  std::move(resources),
                  dims,
                  faiss::METRIC_L2,
                  config) {}

void GpuIndexBitsFlatL2::copyFrom(const faiss::IndexFlat* index) {
    GpuIndexBitsFlat::copyFrom(
            withMetric(index, faiss::METRIC_L2, "GpuIndexBitsFlatL2"));
}

void GpuIndexBitsFlatL2::copyTo(faiss::IndexFlat* index) const {
    GpuIndexBitsFlat::copyTo(
            withMetric(index, faiss::METRIC_L2, "GpuIndexBitsFlatL2"));
}

//
// GpuIndexBitsFlatIP
//

GpuIndexBitsFlatIP::GpuIndexBitsFlatIP(
        GpuResourcesProvider* provider,
        const faiss::IndexFlatIP* index,
        GpuIndexBitsFlatConfig config)
        : GpuIndexBitsFlatIP(detail::resourcesOf(provider), index, config) {}

GpuIndexBitsFlatIP::GpuIndexBitsFlatIP(
        std::shared_ptr<GpuResources> resources,
        const faiss::IndexFlatIP* index,
        GpuIndexBitsFlatConfig config)
        : GpuIndexBitsFlat(
                  std::move(resources),
                  withMetric(
                          index,
                          faiss::METRIC_INNER_PRODUCT,
                          "GpuIndexBitsFlatIP"),
                  config) {}

GpuIndexBitsFlatIP::GpuIndexBitsFlatIP(
        GpuResourcesProvider* provider,
        int dims,
        GpuIndexBitsFlatConfig config)
        : GpuIndexBitsFlat(
                  provider,
                  dims,
                  faiss::METRIC_INNER_PRODUCT,
                  config) {}

GpuIndexBitsFlatIP::GpuIndexBitsFlatIP(
        std::shared_ptr<GpuResources> resources,
        int dims,
        GpuIndexBitsFlatConfig config)
        : GpuIndexBitsFlat(
                  std::move(resources),
                  dims,
                  faiss::METRIC_INNER_PRODUCT,
                  config) {}

void GpuIndexBitsFlatIP::copyFrom(const faiss::IndexFlat* index) {
    GpuIndexBitsFlat::copyFrom(withMetric(
            index, faiss::METRIC_INNER_PRODUCT, "GpuIndexBitsFlatIP"));
}

void GpuIndexBitsFlatIP::copyTo(faiss::IndexFlat* index) const {
    GpuIndexBitsFlat::copyTo(withMetric(
            index, faiss::METRIC_INNER_PRODUCT, "GpuIndexBitsFlatIP"));
}

} // namespace faiss_bits::gpu
