#include "faiss_bits/ivf/GpuIndexBitsIVF.h"

#include <utility>

#include <faiss/gpu/GpuIndexIVFFlat.h>
#include <faiss/gpu/GpuIndexIVFPQ.h>
#include <faiss/gpu/GpuIndexIVFScalarQuantizer.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/ivf/IvfChecks.h"
#include "faiss_bits/ivf/IvfIndexSearch.h"
#include "faiss_bits/ivf/IvfIndexVectors.h"
#include "faiss_bits/ivf/ListStorage.h"

namespace faiss_bits::gpu {

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::take_(
        GpuIndexBitsIVF& copy,
        size_t numProbes) noexcept {
    detail::takeFields(*this, copy);
    this->nprobe = decltype(this->nprobe)(numProbes);
    this->index_ = std::move(copy.index_);
    this->baseIndex_ = std::move(copy.baseIndex_);
}

template <class FaissIndex>
detail::IvfIndex GpuIndexBitsIVF<FaissIndex>::ivfIndex_() const {
    detail::IvfIndex index = detail::ivfIndexOf(
            *this,
            *this->resources_,
            this->minPagedSize_,
            this->ivfConfig_.indicesOptions);
    if (this->is_trained && this->index_) {
        index.base = this->baseIndex_.get();
        index.owner = this->baseIndex_;
        index.lists = ivfLists_();
        index.lists.numVectors = this->ntotal;
    }
    return index;
}

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::setNumProbes(int numProbes) {
    this->nprobe = detail::requirePositive(numProbes, "nprobe");
}

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    detail::searchIvf(ivfIndex_(), n, x, k, distances, labels, params);
}

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::searchImpl_(
        ImplSize n,
        const float* x,
        int k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    detail::searchIvfOnDevice(ivfIndex_(), n, x, k, distances, labels, params);
}

#if FAISS_BITS_FAISS_HAS_NUMERIC_TYPE
template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::search_ex(
        idx_t n,
        const void* x,
        faiss::NumericType numericType,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    const float* const queries =
            faiss_bits::detail::requireFloat32(x, numericType);
    search(n, queries, k, distances, labels, params);
}
#endif

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::search_preassigned(
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

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::assign(
        idx_t n,
        const float* x,
        idx_t* labels,
        idx_t k) const {
    detail::assignIvf(ivfIndex_(), n, x, labels, k);
}

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    detail::rangeSearchIvf(ivfIndex_(), n, x, radius, result, params);
}

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::rangeSearchOnDevice(
        idx_t n,
        const float* x,
        float radius,
        GpuRangeResult& result,
        const faiss::SearchParameters* params) const {
    detail::rangeSearchIvfOnDevice(ivfIndex_(), n, x, radius, result, params);
}

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::search_and_reconstruct(
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

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::reconstruct(idx_t key, float* out) const {
    detail::reconstructIvf(ivfIndex_(), 1, key, out, "key");
}

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::reconstruct_n(idx_t i0, idx_t n, float* out)
        const {
    detail::reconstructIvf(ivfIndex_(), n, i0, out, "i0 + number");
}

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::reconstruct_batch(
        idx_t n,
        const idx_t* keys,
        float* out) const {
    detail::reconstructBatchIvf(ivfIndex_(), n, keys, out);
}

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::reset() {
    detail::countListLoss();
    FaissIndex::reset();
}

template <class FaissIndex>
size_t GpuIndexBitsIVF<FaissIndex>::remove_ids(const faiss::IDSelector& sel) {
    const idx_t removed =
            detail::removeIvf(ivfIndex_(), this->baseIndex_.get(), sel);
    this->ntotal -= removed;
    return size_t(removed);
}

template <class FaissIndex>
void GpuIndexBitsIVF<FaissIndex>::update_vectors(
        idx_t n,
        const idx_t* ids,
        const float* x) {
    detail::updateIvf(
            *this,
            this->baseIndex_.get(),
            [this] { return ivfIndex_(); },
            n,
            ids,
            x);
}

template class GpuIndexBitsIVF<faiss::gpu::GpuIndexIVFFlat>;
template class GpuIndexBitsIVF<faiss::gpu::GpuIndexIVFPQ>;
template class GpuIndexBitsIVF<faiss::gpu::GpuIndexIVFScalarQuantizer>;

} // namespace faiss_bits::gpu
