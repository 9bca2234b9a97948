#include "faiss_bits/ivf/GpuIndexBitsIVFScalarQuantizer.h"

#include <utility>

#include <faiss/IndexScalarQuantizer.h>
#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissCompat.h"
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
using detail::checkedQuantizer;
using faiss::ScalarQuantizer;
using faiss::gpu::DeviceScope;
using faiss::gpu::GpuIndexIVFScalarQuantizerConfig;
using faiss::gpu::GpuResourcesProvider;

namespace {

ScalarQuantizer::QuantizerType checkedType(
        ScalarQuantizer::QuantizerType qtype,
        const GpuIndexIVFScalarQuantizerConfig& config) {
    switch (qtype) {
        case ScalarQuantizer::QT_8bit:
        case ScalarQuantizer::QT_8bit_uniform:
        case ScalarQuantizer::QT_8bit_direct:
        case ScalarQuantizer::QT_4bit:
        case ScalarQuantizer::QT_4bit_uniform:
        case ScalarQuantizer::QT_fp16:
            break;
        case ScalarQuantizer::QT_6bit:
            // FAISS cannot add to such lists, and ends the process.
            FAISS_THROW_IF_NOT_FMT(
                    config.interleavedLayout,
                    "config.interleavedLayout = false: qtype = %d (QT_6bit) "
                    "needs it",
                    int(qtype));
            break;
        default:
            FAISS_THROW_FMT(
                    "qtype = %d is none of the types of FAISS's GPU: QT_8bit, "
                    "QT_8bit_uniform, QT_8bit_direct, QT_4bit, "
                    "QT_4bit_uniform, QT_6bit, QT_fp16",
                    int(qtype));
    }
    return qtype;
}

const faiss::IndexIVFScalarQuantizer* checked(
        const faiss::IndexIVFScalarQuantizer* index,
        const GpuIndexIVFScalarQuantizerConfig& config) {
    detail::requireIvfIndex(index);
    checkedType(index->sq.qtype, config);
    return index;
}

} // namespace

GpuIndexBitsIVFScalarQuantizer::GpuIndexBitsIVFScalarQuantizer(
        GpuResourcesProvider* provider,
        std::unique_ptr<faiss::Index> ownQuantizer,
        int dims,
        int nlist,
        ScalarQuantizer::QuantizerType qtype,
        faiss::MetricType metric,
        bool encodeResidual,
        GpuIndexIVFScalarQuantizerConfig config)
        : GpuIndexIVFScalarQuantizer(
                  provider,
                  ownQuantizer.get(),
                  dims,
                  checkedLists(nlist),
                  checkedType(qtype, config),
                  metric,
                  encodeResidual,
                  checkedIvfConfig(config)) {
    own_fields = true;
    ownQuantizer.release();
}

GpuIndexBitsIVFScalarQuantizer::GpuIndexBitsIVFScalarQuantizer(
        GpuResourcesProvider* provider,
        int dims,
        int nlist,
        ScalarQuantizer::QuantizerType qtype,
        faiss::MetricType metric,
        bool encodeResidual,
        GpuIndexIVFScalarQuantizerConfig config)
        : GpuIndexBitsIVFScalarQuantizer(
                  provider,
                  detail::makeIvfQuantizer(provider, dims, metric, config),
                  dims,
                  nlist,
                  qtype,
                  metric,
                  encodeResidual,
                  config) {}

GpuIndexBitsIVFScalarQuantizer::GpuIndexBitsIVFScalarQuantizer(
        GpuResourcesProvider* provider,
        const faiss::IndexIVFScalarQuantizer* index,
        GpuIndexIVFScalarQuantizerConfig config)
        : GpuIndexBitsIVFScalarQuantizer(
                  provider,
                  int(checked(index, config)->d),
                  int(index->nlist),
                  index->sq.qtype,
                  index->metric_type,
                  index->by_residual,
                  config) {
    copyFrom(index);
}

GpuIndexBitsIVFScalarQuantizer::GpuIndexBitsIVFScalarQuantizer(
        GpuResourcesProvider* provider,
        faiss::Index* coarseQuantizer,
        int dims,
        int nlist,
        ScalarQuantizer::QuantizerType qtype,
        faiss::MetricType metric,
        bool encodeResidual,
        GpuIndexIVFScalarQuantizerConfig config)
        : GpuIndexIVFScalarQuantizer(
                  checkedProvider(provider),
                  encodeResidual ? checkedCentroids(coarseQuantizer)
                                 : checkedQuantizer(coarseQuantizer),
                  checkedDims(dims),
                  checkedLists(nlist),
                  checkedType(qtype, config),
                  checkedIvfMetric(metric),
                  encodeResidual,
                  checkedIvfConfig(config)) {}

void GpuIndexBitsIVFScalarQuantizer::copyFrom(
        const faiss::IndexIVFScalarQuantizer* index) {
    checked(index, ivfSQConfig_);
    DeviceScope scope(config_.device);
    auto ours =
            detail::copyFlatQuantizer(resources_, ivfConfig_, index->quantizer);
    // A copy beside what is here, which goes when nothing can fail any more.
    faiss::gpu::GpuResourcesProviderFromInstance provider(resources_);
    GpuIndexBitsIVFScalarQuantizer copy(
            &provider,
            int(index->d),
            int(index->nlist),
            index->sq.qtype,
            index->metric_type,
            index->by_residual,
            ivfSQConfig_);
    detail::withFewProbes(
            index, [&](const faiss::IndexIVFScalarQuantizer* cpu) {
                copy.GpuIndexIVFScalarQuantizer::copyFrom(cpu);
            });
    detail::replaceQuantizer(copy, std::move(ours));
    detail::takeFields(*this, copy);
    nprobe = decltype(nprobe)(index->nprobe);
    std::swap(sq, copy.sq);
    by_residual = copy.by_residual;
    index_ = std::move(copy.index_);
    baseIndex_ = std::move(copy.baseIndex_);
}

void GpuIndexBitsIVFScalarQuantizer::setNumProbes(int numProbes) {
    nprobe = detail::checkedProbes(numProbes);
}

detail::IvfIndex GpuIndexBitsIVFScalarQuantizer::ivfIndex_() const {
    detail::IvfIndex index = detail::ivfIndexOf(
            *this, *resources_, minPagedSize_, ivfSQConfig_.indicesOptions);
    if (is_trained && index_) {
        index.base = baseIndex_.get();
        index.owner = baseIndex_;
        index.lists =
                detail::scalarListsOf(*index_, ivfSQConfig_.indicesOptions);
        index.lists.numVectors = ntotal;
    }
    return index;
}

void GpuIndexBitsIVFScalarQuantizer::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    detail::searchIvf(ivfIndex_(), n, x, k, distances, labels, params);
}

void GpuIndexBitsIVFScalarQuantizer::assign(
        idx_t n,
        const float* x,
        idx_t* labels,
        idx_t k) const {
    detail::assignIvf(ivfIndex_(), n, x, labels, k);
}

#if FAISS_BITS_FAISS_HAS_NUMERIC_TYPE
void GpuIndexBitsIVFScalarQuantizer::search_ex(
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

void GpuIndexBitsIVFScalarQuantizer::search_preassigned(
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

void GpuIndexBitsIVFScalarQuantizer::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    detail::rangeSearchIvf(ivfIndex_(), n, x, radius, result, params);
}

void GpuIndexBitsIVFScalarQuantizer::rangeSearchOnDevice(
        idx_t n,
        const float* x,
        float radius,
        GpuRangeResult& result,
        const faiss::SearchParameters* params) const {
    detail::rangeSearchIvfOnDevice(ivfIndex_(), n, x, radius, result, params);
}

void GpuIndexBitsIVFScalarQuantizer::search_and_reconstruct(
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

void GpuIndexBitsIVFScalarQuantizer::reconstruct(idx_t key, float* out) const {
    detail::reconstructIvf(ivfIndex_(), 1, key, out, "key");
}

void GpuIndexBitsIVFScalarQuantizer::reconstruct_n(
        idx_t i0,
        idx_t n,
        float* out) const {
    detail::reconstructIvf(ivfIndex_(), n, i0, out, "i0 + number");
}

void GpuIndexBitsIVFScalarQuantizer::reconstruct_batch(
        idx_t n,
        const idx_t* keys,
        float* out) const {
    detail::reconstructBatchIvf(ivfIndex_(), n, keys, out);
}

void GpuIndexBitsIVFScalarQuantizer::reset() {
    detail::countListLoss();
    faiss::gpu::GpuIndexIVFScalarQuantizer::reset();
}

size_t GpuIndexBitsIVFScalarQuantizer::remove_ids(
        const faiss::IDSelector& sel) {
    const idx_t removed = detail::removeIvf(ivfIndex_(), baseIndex_.get(), sel);
    ntotal -= removed;
    return size_t(removed);
}

void GpuIndexBitsIVFScalarQuantizer::update_vectors(
        idx_t n,
        const idx_t* ids,
        const float* x) {
    detail::updateIvf(
            *this, baseIndex_.get(), [this] { return ivfIndex_(); }, n, ids, x);
}

void GpuIndexBitsIVFScalarQuantizer::searchImpl_(
        ImplSize n,
        const float* x,
        int k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    detail::searchIvfOnDevice(ivfIndex_(), n, x, k, distances, labels, params);
}

} // namespace faiss_bits::gpu
