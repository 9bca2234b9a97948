#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"

#include <utility>

#include <faiss/IndexIVFFlat.h>
#include <faiss/gpu/GpuCloner.h>
#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/ivf/IvfChecks.h"
#include "faiss_bits/ivf/IvfIndexSearch.h"
#include "faiss_bits/ivf/IvfIndexVectors.h"
#include "faiss_bits/ivf/ListStorage.h"

namespace faiss_bits::gpu {

using detail::checkedDims;
using detail::checkedIvfConfig;
using detail::checkedIvfMetric;
using detail::checkedLists;
using detail::checkedProvider;
using detail::checkedQuantizer;
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
                  checkedIvfConfig(config)) {
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
                  detail::makeIvfQuantizer(provider, dims, metric, config),
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
                  checkedProvider(provider),
                  checkedQuantizer(coarseQuantizer),
                  checkedDims(dims),
                  checkedLists(nlist),
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
    detail::takeFields(*this, copy);
    nprobe = decltype(nprobe)(index->nprobe);
    index_ = std::move(copy.index_);
    baseIndex_ = std::move(copy.baseIndex_);
}

void GpuIndexBitsIVFFlat::setNumProbes(int numProbes) {
    nprobe = detail::checkedProbes(numProbes);
}

detail::IvfIndex GpuIndexBitsIVFFlat::ivfIndex_() const {
    detail::IvfIndex index = detail::ivfIndexOf(
            *this, *resources_, minPagedSize_, ivfConfig_.indicesOptions);
    if (is_trained && index_) {
        index.base = baseIndex_.get();
        index.owner = baseIndex_;
        index.lists = detail::floatListsOf(*index_, ivfConfig_.indicesOptions);
        index.lists.numVectors = ntotal;
    }
    return index;
}

void GpuIndexBitsIVFFlat::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    detail::searchIvf(ivfIndex_(), n, x, k, distances, labels, params);
}

void GpuIndexBitsIVFFlat::assign(
        idx_t n,
        const float* x,
        idx_t* labels,
        idx_t k) const {
    detail::assignIvf(ivfIndex_(), n, x, labels, k);
}

#if FAISS_BITS_FAISS_HAS_NUMERIC_TYPE
void GpuIndexBitsIVFFlat::search_ex(
        idx_t n,
        const void* x,
        faiss::NumericType numericType,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    detail::requireFloat32(numericType);
    search(n, static_cast<const float*>(x), k, distances, labels, params);
}
#endif

void GpuIndexBitsIVFFlat::search_preassigned(
        idx_t n,
        const float* x,
        idx_t k,
        const idx_t* assign,
        const float*,
        float* distances,
        idx_t* labels,
        bool store_pairs,
        const faiss::SearchParametersIVF* params
#if FAISS_BITS_FAISS_HAS_IVF_INTERFACE
        ,
        faiss::IndexIVFStats* stats) const {
#else
) const {
    const faiss::IndexIVFStats* stats = nullptr;
#endif
    detail::searchIvfPreassigned(
            ivfIndex_(),
            n,
            x,
            k,
            assign,
            distances,
            labels,
            store_pairs,
            params,
            stats);
}

void GpuIndexBitsIVFFlat::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    detail::rangeSearchIvf(ivfIndex_(), n, x, radius, result, params);
}

void GpuIndexBitsIVFFlat::rangeSearchOnDevice(
        idx_t n,
        const float* x,
        float radius,
        GpuRangeResult& result,
        const faiss::SearchParameters* params) const {
    detail::rangeSearchIvfOnDevice(ivfIndex_(), n, x, radius, result, params);
}

void GpuIndexBitsIVFFlat::search_and_reconstruct(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        float* recons,
        const faiss::SearchParameters* params) const {
    detail::searchAndReconstructIvf(
            ivfIndex_(), n, x, k, distances, labels, recons, params);
}

void GpuIndexBitsIVFFlat::reconstruct(idx_t key, float* out) const {
    detail::reconstructIvf(ivfIndex_(), 1, key, out, "key");
}

void GpuIndexBitsIVFFlat::reconstruct_n(idx_t i0, idx_t n, float* out) const {
    detail::reconstructIvf(ivfIndex_(), n, i0, out, "i0 + number");
}

void GpuIndexBitsIVFFlat::reconstruct_batch(
        idx_t n,
        const idx_t* keys,
        float* out) const {
    detail::reconstructBatchIvf(ivfIndex_(), n, keys, out);
}

void GpuIndexBitsIVFFlat::reset() {
    detail::countListLoss();
    faiss::gpu::GpuIndexIVFFlat::reset();
}

size_t GpuIndexBitsIVFFlat::remove_ids(const faiss::IDSelector& sel) {
    const idx_t removed = detail::removeIvf(ivfIndex_(), baseIndex_.get(), sel);
    ntotal -= removed;
    return size_t(removed);
}

void GpuIndexBitsIVFFlat::update_vectors(
        idx_t n,
        const idx_t* ids,
        const float* x) {
    detail::updateIvf(
            *this, baseIndex_.get(), [this] { return ivfIndex_(); }, n, ids, x);
}

void GpuIndexBitsIVFFlat::searchImpl_(
        ImplSize n,
        const float* x,
        int k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    detail::searchIvfOnDevice(ivfIndex_(), n, x, k, distances, labels, params);
}

} // namespace faiss_bits::gpu
