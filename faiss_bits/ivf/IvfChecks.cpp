#include "faiss_bits/ivf/IvfChecks.h"

#include <algorithm>
#include <climits>
#include <iterator>
#include <utility>

#include <faiss/IndexFlat.h>
#include <faiss/IndexIVF.h>
#include <faiss/impl/FaissAssert.h>
#include <faiss/impl/FaissException.h>

#include "faiss_bits/cloners/GpuBitsCloner.h"
#include "faiss_bits/common/CopyableIndex.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"

namespace faiss_bits::gpu::detail {

using faiss::gpu::GpuResourcesProvider;

GpuResourcesProvider* checkedProvider(GpuResourcesProvider* provider) {
    requireNotNull(provider, "provider");
    return provider;
}

faiss::Index* checkedQuantizer(faiss::Index* coarseQuantizer) {
    requireNotNull(coarseQuantizer, "coarseQuantizer");
    return coarseQuantizer;
}

faiss::Index* checkedCentroids(faiss::Index* coarseQuantizer) {
    checkedQuantizer(coarseQuantizer);
    if (auto* ours = dynamic_cast<GpuIndexBitsFlat*>(coarseQuantizer)) {
        try {
            ours->getGpuData();
        } catch (const faiss::FaissException& error) {
            FAISS_THROW_FMT(
                    "coarseQuantizer has no centroids that FAISS can take "
                    "residuals of: %s",
                    error.what());
        }
    }
    return coarseQuantizer;
}

faiss::MetricType checkedIvfMetric(faiss::MetricType metric) {
    FAISS_THROW_IF_NOT_FMT(
            metric == faiss::METRIC_L2 || metric == faiss::METRIC_INNER_PRODUCT,
            "metric = %d: inverted lists on the GPU have METRIC_L2 (%d) and "
            "METRIC_INNER_PRODUCT (%d)",
            int(metric),
            int(faiss::METRIC_L2),
            int(faiss::METRIC_INNER_PRODUCT));
    return metric;
}

bool hasCodesInRows(int numParts) {
    constexpr int kPartsInRows[] = {
            1, 2, 3, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96};
    return std::count(
                   std::begin(kPartsInRows), std::end(kPartsInRows), numParts) >
            0;
}

void requireIvfIndex(const faiss::IndexIVF* index) {
    requireNotNull(index, "index");
    checkedIvfMetric(index->metric_type);
    requirePositive(index->d, "index->d");
    requireWithin(index->nlist, 1, INT_MAX, "index->nlist");
    requireWithin(index->nprobe, 1, INT_MAX, "index->nprobe");
    requireNotNull(index->quantizer, "index->quantizer");
    FAISS_THROW_IF_NOT_MSG(
            !dynamic_cast<const faiss::gpu::GpuIndex*>(index->quantizer),
            "index->quantizer is on a GPU: an index on the CPU is needed");
    FAISS_THROW_IF_NOT_FMT(
            index->max_codes == 0,
            "index->max_codes = %zu: only 0 is supported, on a GPU all of a "
            "list is searched",
            size_t(index->max_codes));
    requireCopyable(*index, "index");
    requireCopyable(*index->quantizer, "index->quantizer");
}

std::unique_ptr<faiss::Index> makeIvfQuantizer(
        GpuResourcesProvider* provider,
        int dims,
        faiss::MetricType metric,
        const faiss::gpu::GpuIndexIVFConfig& config) {
    checkedProvider(provider);
    requirePositive(dims, "dims");
    checkedIvfMetric(metric);
    GpuIndexBitsFlatConfig flat(checkedIvfConfig(config).flatConfig);
    flat.device = config.device;
    if (metric == faiss::METRIC_L2) {
        return std::make_unique<GpuIndexBitsFlatL2>(provider, dims, flat);
    }
    return std::make_unique<GpuIndexBitsFlatIP>(provider, dims, flat);
}

std::unique_ptr<faiss::Index> copyFlatQuantizer(
        std::shared_ptr<faiss::gpu::GpuResources> resources,
        const faiss::gpu::GpuIndexIVFConfig& config,
        const faiss::Index* quantizer) {
    if (!dynamic_cast<const faiss::IndexFlat*>(quantizer)) {
        return nullptr;
    }
    faiss::gpu::GpuResourcesProviderFromInstance provider(std::move(resources));
    faiss::gpu::GpuClonerOptions options;
    options.useFloat16 = config.flatConfig.useFloat16;
    return std::unique_ptr<faiss::Index>(faiss_bits::gpu::index_cpu_to_gpu(
            &provider, config.device, quantizer, &options));
}

void replaceQuantizer(
        faiss::gpu::GpuIndexIVF& index,
        std::unique_ptr<faiss::Index> ours) {
    if (!ours) {
        return;
    }
    if (index.own_fields) {
        delete index.quantizer;
    }
    index.quantizer = ours.release();
    index.own_fields = true;
    index.updateQuantizer();
}

void takeFields(
        faiss::gpu::GpuIndexIVF& index,
        faiss::gpu::GpuIndexIVF& copy) noexcept {
    if (index.own_fields) {
        delete index.quantizer;
    }
    index.quantizer = std::exchange(copy.quantizer, nullptr);
    index.own_fields = std::exchange(copy.own_fields, false);
    index.d = copy.d;
    index.metric_type = copy.metric_type;
    index.metric_arg = copy.metric_arg;
    index.ntotal = copy.ntotal;
    index.is_trained = copy.is_trained;
    index.nlist = copy.nlist;
}

} // namespace faiss_bits::gpu::detail
