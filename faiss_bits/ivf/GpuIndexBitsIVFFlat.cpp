#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"

#include <climits>
#include <utility>

#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/gpu/GpuCloner.h>
#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/cloners/GpuBitsCloner.h"
#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/ivf/ListStorage.h"

namespace faiss_bits::gpu {

using detail::requireNotNull;
using faiss::gpu::DeviceScope;
using faiss::gpu::GpuIndexIVFFlatConfig;
using faiss::gpu::GpuResourcesProvider;

namespace {

// As in GpuIndexBitsFlat.cpp these run while the base class's arguments are
// made, since FAISS's constructors end the process on some of these mistakes.

GpuResourcesProvider* checked(GpuResourcesProvider* provider) {
    requireNotNull(provider, "provider");
    return provider;
}

GpuIndexIVFFlatConfig checked(GpuIndexIVFFlatConfig config) {
    detail::requireDevice(config.device);
    FAISS_THROW_IF_NOT_MSG(
            !asksForMissingCuvs(config),
            "config.use_cuvs = true, but this FAISS has no cuVS");
    turnOffCuvs(config);
    turnOffCuvs(config.flatConfig);
    return config;
}

int checkedDims(int dims) {
    FAISS_THROW_IF_NOT_FMT(dims >= 1, "dims = %d, at least 1 is needed", dims);
    return dims;
}

int checkedLists(int nlist) {
    FAISS_THROW_IF_NOT_FMT(
            nlist >= 1, "nlist = %d, at least 1 is needed", nlist);
    return nlist;
}

faiss::MetricType checked(faiss::MetricType metric) {
    FAISS_THROW_IF_NOT_FMT(
            metric == faiss::METRIC_L2 || metric == faiss::METRIC_INNER_PRODUCT,
            "metric = %d: inverted lists on the GPU have METRIC_L2 (%d) and "
            "METRIC_INNER_PRODUCT (%d)",
            int(metric),
            int(faiss::METRIC_L2),
            int(faiss::METRIC_INNER_PRODUCT));
    return metric;
}

const faiss::IndexIVFFlat* checked(const faiss::IndexIVFFlat* index) {
    requireNotNull(index, "index");
    checked(index->metric_type);
    FAISS_THROW_IF_NOT_FMT(
            index->d >= 1,
            "index->d = %lld, at least 1 is needed",
            (long long)index->d);
    FAISS_THROW_IF_NOT_FMT(
            index->nlist >= 1 && index->nlist <= size_t(INT_MAX),
            "index->nlist = %zu is outside 1..%d",
            size_t(index->nlist),
            INT_MAX);
    FAISS_THROW_IF_NOT_FMT(
            index->nprobe >= 1 && index->nprobe <= size_t(INT_MAX),
            "index->nprobe = %zu is outside 1..%d",
            size_t(index->nprobe),
            INT_MAX);
    requireNotNull(index->quantizer, "index->quantizer");
    FAISS_THROW_IF_NOT_MSG(
            !dynamic_cast<const faiss::gpu::GpuIndex*>(index->quantizer),
            "index->quantizer is on a GPU: an index on the CPU is needed");
    return index;
}

faiss::Index* checked(faiss::Index* coarseQuantizer) {
    requireNotNull(coarseQuantizer, "coarseQuantizer");
    return coarseQuantizer;
}

std::unique_ptr<faiss::Index> makeQuantizer(
        GpuResourcesProvider* provider,
        int dims,
        faiss::MetricType metric,
        const GpuIndexIVFFlatConfig& config) {
    checked(provider);
    checkedDims(dims);
    checked(metric);
    GpuIndexBitsFlatConfig flat(checked(config).flatConfig);
    flat.device = config.device;
    if (metric == faiss::METRIC_L2) {
        return std::make_unique<GpuIndexBitsFlatL2>(provider, dims, flat);
    }
    return std::make_unique<GpuIndexBitsFlatIP>(provider, dims, flat);
}

} // namespace

GpuIndexBitsIVFFlat::GpuIndexBitsIVFFlat(
        GpuResourcesProvider* provider,
        std::unique_ptr<faiss::Index> ownQuantizer,
        int dims,
        int nlist,
        faiss::MetricType metric,
        GpuIndexIVFFlatConfig config)
        : GpuIndexIVFFlat(
                  provider,
                  ownQuantizer.get(),
                  dims,
                  checkedLists(nlist),
                  metric,
                  checked(config)) {
    own_fields = true;
    ownQuantizer.release();
}

GpuIndexBitsIVFFlat::GpuIndexBitsIVFFlat(
        GpuResourcesProvider* provider,
        int dims,
        int nlist,
        faiss::MetricType metric,
        GpuIndexIVFFlatConfig config)
        : GpuIndexBitsIVFFlat(
                  provider,
                  makeQuantizer(provider, dims, metric, config),
                  dims,
                  nlist,
                  metric,
                  config) {}

GpuIndexBitsIVFFlat::GpuIndexBitsIVFFlat(
        GpuResourcesProvider* provider,
        const faiss::IndexIVFFlat* index,
        GpuIndexIVFFlatConfig config)
        : GpuIndexBitsIVFFlat(
                  provider,
                  int(checked(index)->d),
                  int(index->nlist),
                  index->metric_type,
                  config) {
    copyFrom(index);
}

GpuIndexBitsIVFFlat::GpuIndexBitsIVFFlat(
        GpuResourcesProvider* provider,
        faiss::Index* coarseQuantizer,
        int dims,
        int nlist,
        faiss::MetricType metric,
        GpuIndexIVFFlatConfig config)
        : GpuIndexIVFFlat(
                  checked(provider),
                  checked(coarseQuantizer),
                  checkedDims(dims),
                  checkedLists(nlist),
                  checked(metric),
                  checked(config)) {}

void GpuIndexBitsIVFFlat::copyFrom(const faiss::IndexIVFFlat* index) {
    checked(index);
    DeviceScope scope(config_.device);
    faiss::gpu::GpuResourcesProviderFromInstance provider(resources_);
    faiss::gpu::GpuClonerOptions options;
    options.useFloat16 = ivfConfig_.flatConfig.useFloat16;
    const bool isFlat =
            dynamic_cast<const faiss::IndexFlat*>(index->quantizer) != nullptr;
    std::unique_ptr<faiss::Index> theirs(
            isFlat ? faiss_bits::gpu::index_cpu_to_gpu(
                             &provider,
                             config_.device,
                             index->quantizer,
                             &options)
                   : faiss::gpu::index_cpu_to_gpu(
                             &provider, config_.device, index->quantizer));
    // A copy beside what is here, which goes when nothing can fail any more.
    GpuIndexBitsIVFFlat copy(
            &provider,
            theirs.get(),
            int(index->d),
            int(index->nlist),
            index->metric_type,
            ivfFlatConfig_);
    FAISS_THROW_IF_NOT_FMT(
            copy.is_trained || !index->is_trained,
            "index->quantizer has %lld centroids, but index->nlist = %zu",
            (long long)index->quantizer->ntotal,
            size_t(index->nlist));
    if (index->is_trained) {
        detail::copyListsFrom(*copy.baseIndex_, index->invlists);
    } else {
        copy.index_.reset();
        copy.baseIndex_.reset();
    }
    if (own_fields) {
        delete quantizer;
    }
    quantizer = theirs.release();
    own_fields = true;
    d = index->d;
    metric_type = index->metric_type;
    metric_arg = index->metric_arg;
    ntotal = index->ntotal;
    is_trained = index->is_trained;
    nlist = copy.nlist;
    nprobe = decltype(nprobe)(index->nprobe);
    index_ = std::move(copy.index_);
    baseIndex_ = std::move(copy.baseIndex_);
}

void GpuIndexBitsIVFFlat::setNumProbes(int numProbes) {
    FAISS_THROW_IF_NOT_FMT(
            numProbes >= 1, "nprobe = %d, at least 1 is needed", numProbes);
    nprobe = numProbes;
}

} // namespace faiss_bits::gpu
