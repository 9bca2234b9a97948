#include "faiss_bits/flat/Centroids.h"

#include <typeinfo>

#include "faiss_bits/flat/FlatStorage.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/flat/VectorFacts.h"

namespace faiss_bits::gpu {

using detail::Centroids;
using detail::FlatView;
using detail::GpuContext;

Centroids GpuIndexBitsFlat::centroidsFor_(const GpuContext& context) const {
    Centroids centroids;
    if (search_mode != SearchMode::Certified ||
        (metric_type != faiss::METRIC_L2 &&
         metric_type != faiss::METRIC_INNER_PRODUCT) ||
        storageType_() != DataType::Float32 ||
        resources_.get() != context.resources ||
        config_.device != context.device) {
        return centroids;
    }
    const FlatView view = detail::viewOf(*data_, DataType::Float32);
    facts_->awaitChanges(context, view.greatestNorm || view.n == 0);
    centroids.vectors = static_cast<const float*>(view.vectors);
    centroids.metric = detail::requireMetric(metric_type);
    centroids.counters = counters_.get();
    return centroids;
}

namespace detail {

Centroids centroidsFor(
        const GpuContext& context,
        const faiss::Index& quantizer) {
    const auto& type = typeid(quantizer);
    const bool isOurs = type == typeid(GpuIndexBitsFlat) ||
            type == typeid(GpuIndexBitsFlatL2) ||
            type == typeid(GpuIndexBitsFlatIP);
    return isOurs
            ? static_cast<const GpuIndexBitsFlat&>(quantizer).centroidsFor_(
                      context)
            : Centroids();
}

} // namespace detail

} // namespace faiss_bits::gpu
