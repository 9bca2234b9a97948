#include "faiss_bits/flat/Centroids.h"

#include <typeinfo>

#include "faiss_bits/flat/FlatStorage.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/flat/VectorFacts.h"

namespace faiss_bits::gpu::detail {

Centroids centroidsFor(
        const GpuContext& context,
        const faiss::Index& quantizer) {
    const auto& type = typeid(quantizer);
    Centroids centroids;
    if (type != typeid(GpuIndexBitsFlat) &&
        type != typeid(GpuIndexBitsFlatL2) &&
        type != typeid(GpuIndexBitsFlatIP)) {
        return centroids;
    }
    const auto& index = static_cast<const GpuIndexBitsFlat&>(quantizer);
    if (index.search_mode != SearchMode::Certified ||
        (index.metric_type != faiss::METRIC_L2 &&
         index.metric_type != faiss::METRIC_INNER_PRODUCT) ||
        index.storageType_() != DataType::Float32 ||
        index.resources_.get() != context.resources ||
        index.config_.device != context.device) {
        return centroids;
    }
    const FlatView view = viewOf(*index.data_, DataType::Float32);
    index.facts_->awaitChanges(context, view.greatestNorm || view.n == 0);
    centroids.vectors = static_cast<const float*>(view.vectors);
    centroids.metric = requireMetric(index.metric_type);
    centroids.counters = index.counters_.get();
    return centroids;
}

} // namespace faiss_bits::gpu::detail
