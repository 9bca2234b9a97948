#include "faiss_bits/cloners/GpuBitsCloner.h"

#include <faiss/IndexFlat.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"

namespace faiss_bits::gpu {

namespace {

/// GpuIndexBitsFlatL2 and IP take FAISS's subclass of IndexFlat; this takes
/// any IndexFlat of the right metric.
template <class GpuIndex>
faiss::Index* cloneFlat(
        faiss::gpu::GpuResourcesProvider* provider,
        const faiss::IndexFlat* index,
        const GpuIndexBitsFlatConfig& config) {
    auto clone = std::make_unique<GpuIndex>(provider, index->d, config);
    clone->copyFrom(index);
    return clone.release();
}

} // namespace

faiss::Index* BitsToGpuCloner::clone_Index(const faiss::Index* index) {
    const auto* flat = dynamic_cast<const faiss::IndexFlat*>(index);
    if (flat) {
        GpuIndexBitsFlatConfig config;
        config.device = device;
        config.useFloat16 = useFloat16;
        config.storeTransposed = storeTransposed;
        copyCuvsChoice(config, static_cast<const GpuClonerOptions&>(*this));
        if (flat->metric_type == faiss::METRIC_L2) {
            return cloneFlat<GpuIndexBitsFlatL2>(provider, flat, config);
        }
        if (flat->metric_type == faiss::METRIC_INNER_PRODUCT) {
            return cloneFlat<GpuIndexBitsFlatIP>(provider, flat, config);
        }
        if (detail::hasMetric(flat->metric_type)) {
            return std::make_unique<GpuIndexBitsFlat>(provider, flat, config)
                    .release();
        }
    }
    return ToGpuCloner::clone_Index(index);
}

faiss::Index* index_cpu_to_gpu(
        faiss::gpu::GpuResourcesProvider* provider,
        int device,
        const faiss::Index* index,
        const faiss::gpu::GpuClonerOptions* options) {
    detail::requireNotNull(provider, "provider");
    detail::requireNotNull(index, "index");
    detail::requireDevice(device);
    const faiss::gpu::GpuClonerOptions defaults;
    BitsToGpuCloner cloner(provider, device, options ? *options : defaults);
    return cloner.clone_Index(index);
}

} // namespace faiss_bits::gpu
