#pragma once

#include <memory>

#include <faiss/Index.h>
#include <faiss/gpu/GpuIndicesOptions.h>

#include "faiss_bits/common/FaissCompat.h"
#include "kernels/ivf/IvfLists.h"

namespace faiss {
struct IndexIVFStats;
struct SearchParameters;
struct SearchParametersIVF;
namespace gpu {
class GpuIndexIVF;
class GpuResources;
class IVFBase;
} // namespace gpu
} // namespace faiss

/// Searches of our indexes of inverted lists, whatever the lists store. Not
/// part of the API.
namespace faiss_bits::gpu::detail {

/// An index as its searches see it, until it changes.
struct IvfIndex {
    faiss::gpu::GpuResources* resources = nullptr;
    int device = 0;
    size_t minPagedSize = 0; ///< bytes, as GpuIndex has it

    int d = 0;
    faiss::MetricType metric = faiss::METRIC_L2;
    size_t nlist = 0;
    size_t nprobe = 0;
    idx_t ntotal = 0;
    const faiss::Index* quantizer = nullptr;

    const faiss::gpu::IVFBase* base = nullptr; ///< nullptr: not trained
    /// Tells it from another one that later lies where it lay.
    std::weak_ptr<const faiss::gpu::IVFBase> owner;
    faiss::gpu::IndicesOptions indices = faiss::gpu::INDICES_64_BIT;
    IvfLists lists; ///< of `base`
};

/// Of `index` what is not of its lists.
IvfIndex ivfIndexOf(
        const faiss::gpu::GpuIndexIVF& index,
        faiss::gpu::GpuResources& resources,
        size_t minPagedSize,
        faiss::gpu::IndicesOptions indices);

/// Index::search. Arguments are checked, and named in exceptions.
void searchIvf(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params);

/// Index::assign.
void assignIvf(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        idx_t* labels,
        idx_t k);

/// Search of the lists that `assign` [n, nprobe] names; `stats` must be null.
void searchIvfPreassigned(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        idx_t k,
        const idx_t* assign,
        float* distances,
        idx_t* labels,
        bool storePairs,
        const faiss::SearchParametersIVF* params,
        const faiss::IndexIVFStats* stats);

/// GpuIndex::searchImpl_: x, distances and labels lie on the index's device.
void searchIvfOnDevice(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params);

} // namespace faiss_bits::gpu::detail
