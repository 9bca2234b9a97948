#include "faiss_bits/ivf/GpuIndexBitsIVFPQ.h"

#include <utility>

#include <faiss/IndexIVFPQ.h>
#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>
#include <faiss/invlists/InvertedLists.h>

#include "faiss_bits/ivf/IvfChecks.h"
#include "faiss_bits/ivf/IvfIndexSearch.h"
#include "faiss_bits/ivf/IvfIndexVectors.h"
#include "faiss_bits/ivf/ListStorage.h"

namespace faiss_bits::gpu {

using detail::checkedCentroids;
using detail::checkedDims;
using detail::checkedIvfConfig;
using detail::checkedIvfMetric;
using detail::checkedLists;
using detail::checkedProvider;
using faiss::gpu::DeviceScope;
using faiss::gpu::GpuIndexIVFPQConfig;
using faiss::gpu::GpuResourcesProvider;

namespace {

/// subQuantizers, if FAISS's GPU has such codes: its own checks come when parts
/// of the index are made, and name no values.
int checkedParts(
        int dims,
        int subQuantizers,
        int bitsPerCode,
        const GpuIndexIVFPQConfig& config) {
    FAISS_THROW_IF_NOT_FMT(
            subQuantizers >= 1 && checkedDims(dims) % subQuantizers == 0,
            "subQuantizers = %d does not divide dims = %d",
            subQuantizers,
            dims);
    const bool isPacked =
            bitsPerCode == 4 || bitsPerCode == 5 || bitsPerCode == 6;
    FAISS_THROW_IF_NOT_FMT(
            bitsPerCode == 8 || (config.interleavedLayout && isPacked),
            "bitsPerCode = %d: 8 are supported, or with "
            "config.interleavedLayout 4, 5, 6 and 8",
            bitsPerCode);
    FAISS_THROW_IF_NOT_FMT(
            config.interleavedLayout || detail::hasCodesInRows(subQuantizers),
            "subQuantizers = %d is none that FAISS has without "
            "config.interleavedLayout",
            subQuantizers);
    const size_t bytes = (size_t(subQuantizers) << bitsPerCode) *
            (config.useFloat16LookupTables ? 2 : 4);
    const size_t most = faiss::gpu::getMaxSharedMemPerBlock(config.device);
    FAISS_THROW_IF_NOT_FMT(
            bytes <= most,
            "subQuantizers = %d and bitsPerCode = %d: FAISS refuses tables of "
            "%zu bytes, more than %zu (config.useFloat16LookupTables halves "
            "them)",
            subQuantizers,
            bitsPerCode,
            bytes,
            most);
    return subQuantizers;
}

const faiss::IndexIVFPQ* checked(
        const faiss::IndexIVFPQ* index,
        const GpuIndexIVFPQConfig& config) {
    detail::requireIvfIndex(index);
    detail::requireDevice(config.device);
    checkedParts(int(index->d), int(index->pq.M), int(index->pq.nbits), config);
    FAISS_THROW_IF_NOT_MSG(
            index->by_residual,
            "index->by_residual = false: FAISS's GPU has codes of residuals "
            "alone");
    FAISS_THROW_IF_NOT_FMT(
            index->polysemous_ht == 0,
            "index->polysemous_ht = %d: FAISS's GPU has no polysemous codes",
            int(index->polysemous_ht));
    return index;
}

} // namespace

GpuIndexBitsIVFPQ::GpuIndexBitsIVFPQ(
        GpuResourcesProvider* provider,
        std::unique_ptr<faiss::Index> ownQuantizer,
        int dims,
        int nlist,
        int subQuantizers,
        int bitsPerCode,
        faiss::MetricType metric,
        GpuIndexIVFPQConfig config)
        : GpuIndexIVFPQ(
                  provider,
                  ownQuantizer.get(),
                  dims,
                  checkedLists(nlist),
                  checkedParts(dims, subQuantizers, bitsPerCode, config),
                  bitsPerCode,
                  metric,
                  checkedIvfConfig(config)) {
    own_fields = true;
    ownQuantizer.release();
}

GpuIndexBitsIVFPQ::GpuIndexBitsIVFPQ(
        GpuResourcesProvider* provider,
        int dims,
        int nlist,
        int subQuantizers,
        int bitsPerCode,
        faiss::MetricType metric,
        GpuIndexIVFPQConfig config)
        : GpuIndexBitsIVFPQ(
                  provider,
                  detail::makeIvfQuantizer(provider, dims, metric, config),
                  dims,
                  nlist,
                  subQuantizers,
                  bitsPerCode,
                  metric,
                  config) {}

GpuIndexBitsIVFPQ::GpuIndexBitsIVFPQ(
        GpuResourcesProvider* provider,
        const faiss::IndexIVFPQ* index,
        GpuIndexIVFPQConfig config)
        : GpuIndexBitsIVFPQ(
                  provider,
                  int(checked(index, config)->d),
                  int(index->nlist),
                  int(index->pq.M),
                  int(index->pq.nbits),
                  index->metric_type,
                  config) {
    copyFrom(index);
}

GpuIndexBitsIVFPQ::GpuIndexBitsIVFPQ(
        GpuResourcesProvider* provider,
        faiss::Index* coarseQuantizer,
        int dims,
        int nlist,
        int subQuantizers,
        int bitsPerCode,
        faiss::MetricType metric,
        GpuIndexIVFPQConfig config)
        : GpuIndexIVFPQ(
                  checkedProvider(provider),
                  checkedCentroids(coarseQuantizer),
                  checkedDims(dims),
                  checkedLists(nlist),
                  checkedParts(dims, subQuantizers, bitsPerCode, config),
                  bitsPerCode,
                  checkedIvfMetric(metric),
                  checkedIvfConfig(config)) {}

void GpuIndexBitsIVFPQ::copyFrom(const faiss::IndexIVFPQ* index) {
    checked(index, ivfpqConfig_);
    DeviceScope scope(config_.device);
    auto ours =
            detail::copyFlatQuantizer(resources_, ivfConfig_, index->quantizer);
    // A copy beside what is here, which goes when nothing can fail any more.
    faiss::gpu::GpuResourcesProviderFromInstance provider(resources_);
    GpuIndexBitsIVFPQ copy(
            &provider,
            int(index->d),
            int(index->nlist),
            int(index->pq.M),
            int(index->pq.nbits),
            index->metric_type,
            ivfpqConfig_);
    copy.usePrecomputedTables_ = usePrecomputedTables_;
    detail::withFewProbes(index, [&](const faiss::IndexIVFPQ* cpu) {
        copy.GpuIndexIVFPQ::copyFrom(cpu);
    });
    detail::replaceQuantizer(copy, std::move(ours));
    detail::takeFields(*this, copy);
    nprobe = decltype(nprobe)(index->nprobe);
    std::swap(pq, copy.pq);
    subQuantizers_ = copy.subQuantizers_;
    bitsPerCode_ = copy.bitsPerCode_;
    index_ = std::move(copy.index_);
    baseIndex_ = std::move(copy.baseIndex_);
}

void GpuIndexBitsIVFPQ::copyTo(faiss::IndexIVFPQ* index) const {
    detail::requireNotNull(index, "index");
#if !FAISS_BITS_FAISS_COPIES_PACKED_CODES
    if (bitsPerCode_ != 8) {
        FAISS_THROW_IF_NOT_MSG(
                ivfpqConfig_.indicesOptions != faiss::gpu::INDICES_IVF,
                "config.indicesOptions = INDICES_IVF: the index has no ids to "
                "copy");
        DeviceScope scope(config_.device);
        faiss::ProductQuantizer quantizer(d, subQuantizers_, bitsPerCode_);
        auto lists = std::make_unique<faiss::ArrayInvertedLists>(
                size_t(nlist), quantizer.code_size);
        if (index_) {
            detail::copyProductLists(
                    *index_,
                    resources_->getDefaultStream(config_.device),
                    quantizer.centroids,
                    *lists);
        }
        GpuIndexIVF::copyTo(index);
        index->by_residual = true;
        index->use_precomputed_table = 0;
        index->precomputed_table.clear();
        index->do_polysemous_training = false;
        index->polysemous_training = nullptr;
        index->scan_table_threshold = 0;
        index->polysemous_ht = 0;
        index->pq = quantizer;
        index->code_size = quantizer.code_size;
        index->replace_invlists(lists.release(), true);
        return;
    }
#endif
    GpuIndexIVFPQ::copyTo(index);
}

void GpuIndexBitsIVFPQ::setNumProbes(int numProbes) {
    nprobe = detail::checkedProbes(numProbes);
}

detail::IvfIndex GpuIndexBitsIVFPQ::ivfIndex_() const {
    detail::IvfIndex index = detail::ivfIndexOf(
            *this, *resources_, minPagedSize_, ivfpqConfig_.indicesOptions);
    if (is_trained && index_) {
        index.base = baseIndex_.get();
        index.owner = baseIndex_;
        index.lists = detail::productListsOf(
                *index_, ivfpqConfig_.indicesOptions, bitsPerCode_);
        index.lists.numVectors = ntotal;
    }
    return index;
}

void GpuIndexBitsIVFPQ::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    detail::searchIvf(ivfIndex_(), n, x, k, distances, labels, params);
}

void GpuIndexBitsIVFPQ::assign(idx_t n, const float* x, idx_t* labels, idx_t k)
        const {
    detail::assignIvf(ivfIndex_(), n, x, labels, k);
}

#if FAISS_BITS_FAISS_HAS_NUMERIC_TYPE
void GpuIndexBitsIVFPQ::search_ex(
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

void GpuIndexBitsIVFPQ::search_preassigned(
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

void GpuIndexBitsIVFPQ::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    detail::rangeSearchIvf(ivfIndex_(), n, x, radius, result, params);
}

void GpuIndexBitsIVFPQ::rangeSearchOnDevice(
        idx_t n,
        const float* x,
        float radius,
        GpuRangeResult& result,
        const faiss::SearchParameters* params) const {
    detail::rangeSearchIvfOnDevice(ivfIndex_(), n, x, radius, result, params);
}

void GpuIndexBitsIVFPQ::search_and_reconstruct(
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

void GpuIndexBitsIVFPQ::reconstruct(idx_t key, float* out) const {
    detail::reconstructIvf(ivfIndex_(), 1, key, out, "key");
}

void GpuIndexBitsIVFPQ::reconstruct_n(idx_t i0, idx_t n, float* out) const {
    detail::reconstructIvf(ivfIndex_(), n, i0, out, "i0 + number");
}

void GpuIndexBitsIVFPQ::reconstruct_batch(
        idx_t n,
        const idx_t* keys,
        float* out) const {
    detail::reconstructBatchIvf(ivfIndex_(), n, keys, out);
}

void GpuIndexBitsIVFPQ::reset() {
    detail::countListLoss();
    faiss::gpu::GpuIndexIVFPQ::reset();
}

size_t GpuIndexBitsIVFPQ::remove_ids(const faiss::IDSelector& sel) {
    const idx_t removed = detail::removeIvf(ivfIndex_(), baseIndex_.get(), sel);
    ntotal -= removed;
    return size_t(removed);
}

void GpuIndexBitsIVFPQ::update_vectors(
        idx_t n,
        const idx_t* ids,
        const float* x) {
    detail::updateIvf(
            *this, baseIndex_.get(), [this] { return ivfIndex_(); }, n, ids, x);
}

void GpuIndexBitsIVFPQ::searchImpl_(
        ImplSize n,
        const float* x,
        int k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    detail::searchIvfOnDevice(ivfIndex_(), n, x, k, distances, labels, params);
}

} // namespace faiss_bits::gpu
