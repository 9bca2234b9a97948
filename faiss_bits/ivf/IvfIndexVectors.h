#pragma once

#include <functional>

#include <faiss/impl/IDSelector.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/ivf/IvfIndexSearch.h"
#include "faiss_bits/range/GpuRangeResult.h"

namespace faiss {
struct RangeSearchResult;
} // namespace faiss

/// What our indexes of inverted lists do beside searches for the k nearest,
/// whatever the lists store. Not part of the API.
namespace faiss_bits::gpu::detail {

/// Index::range_search. Arguments are checked, and named in exceptions.
void rangeSearchIvf(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params);

/// The same with results on the device.
void rangeSearchIvfOnDevice(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        float radius,
        GpuRangeResult& result,
        const faiss::SearchParameters* params);

/// Index::search_and_reconstruct.
void searchAndReconstructIvf(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        float* recons,
        const faiss::SearchParameters* params);

/// Index::reconstruct_n, from the id `first` on. Errors say `name`.
void reconstructIvf(
        const IvfIndex& index,
        idx_t n,
        idx_t first,
        float* out,
        const char* name);

/// Index::reconstruct_batch. Arguments are checked, and named in exceptions.
void reconstructBatchIvf(
        const IvfIndex& index,
        idx_t n,
        const idx_t* keys,
        float* out);

/// Throws FaissException for the first of keys [n] that is in no list; -1 is in
/// all. Waits for the device.
void requireInLists(
        const IvfIndex& index,
        const GpuContext& context,
        idx_t n,
        const idx_t* keys,
        const char* name);

/// Removes what is selected from the lists `base` of an index, and returns how
/// many. Without lists (nullptr) none.
idx_t removeIvf(
        const IvfIndex& index,
        faiss::gpu::IVFBase* base,
        const faiss::IDSelector& selector);

/// IndexIVF::update_vectors of an index with the lists `base`. After an
/// exception all is as it was.
///
/// view   of the index as it is when it is called
void updateIvf(
        faiss::gpu::GpuIndexIVF& index,
        faiss::gpu::IVFBase* base,
        const std::function<IvfIndex()>& view,
        idx_t n,
        const idx_t* ids,
        const float* x);

} // namespace faiss_bits::gpu::detail
