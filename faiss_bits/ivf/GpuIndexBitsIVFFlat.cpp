#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"

#include <utility>

#include <faiss/IndexIVFFlat.h>
#include <faiss/gpu/GpuCloner.h>
#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/ivf/IvfChecks.h"
#include "faiss_bits/ivf/ListStorage.h"

namespace faiss_bits::gpu {

using detail::checkedIvfConfig;
using detail::checkedIvfMetric;
using detail::checkedProvider;
using detail::checkedQuantizer;
using detail::requirePositive;
using faiss::gpu::DeviceScope;
using faiss::gpu::GpuIndexIVFFlatConfig;
using faiss::gpu::GpuResourcesProvider;

namespace {

const faiss::IndexIVFFlat* checked(const faiss::IndexIVFFlat* index) {
    detail::requireIvfIndex(index);
    return index;
}

} // namespace

GpuIndexBitsIVFFlat::GpuIndexBitsIVFFlat(
        GpuResourcesProvider* provider,
        int dims,
        int nlist,
        faiss::MetricType metric,
        GpuIndexIVFFlatConfig config)
        : GpuIndexBitsIVF(
                  provider,
                  detail::makeIvfQuantizer(provider, dims, metric, config),
                  dims,
                  requirePositive(nlist, "nlist"),
                  metric,
                  checkedIvfConfig(config)) {}

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
        : GpuIndexBitsIVF(
                  checkedProvider(provider),
                  checkedQuantizer(coarseQuantizer),
                  requirePositive(dims, "dims"),
                  requirePositive(nlist, "nlist"),
                  checkedIvfMetric(metric),
                  checkedIvfConfig(config)) {}

void GpuIndexBitsIVFFlat::copyFrom(const faiss::IndexIVFFlat* index) {
    checked(index);
    DeviceScope scope(config_.device);
    faiss::gpu::GpuResourcesProviderFromInstance provider(resources_);
    auto theirs =
            detail::copyFlatQuantizer(resources_, ivfConfig_, index->quantizer);
    if (!theirs) {
        theirs.reset(faiss::gpu::index_cpu_to_gpu(
                &provider, config_.device, index->quantizer));
    }
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
    copy.quantizer = theirs.release();
    copy.own_fields = true;
    copy.metric_arg = index->metric_arg;
    copy.ntotal = index->ntotal;
    copy.is_trained = index->is_trained;
    take_(copy, index->nprobe);
}

IvfLists GpuIndexBitsIVFFlat::ivfLists_() const {
    return detail::floatListsOf(*index_, ivfConfig_.indicesOptions);
}

} // namespace faiss_bits::gpu
