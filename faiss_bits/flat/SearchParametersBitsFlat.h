#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <faiss/Index.h>
#include <faiss/gpu/GpuResources.h>
#include <faiss/impl/FaissAssert.h>

namespace faiss_bits::gpu {

/// How one search of a GpuIndexBitsFlat goes: FAISS's parameters, and the
/// resources that it uses. With them several threads search one index at the
/// same time.
///
/// sel        ids to search among, as FAISS's; null (default): all
/// resources  stream, cuBLAS handle, temporary and pinned memory of the search;
///            null (default): those of the index
/// max_results  of a range search, of all its queries together: where more are
///            in range it throws, with their number. 0 (default): no limit.
///            A search for k neighbours refuses another value
///
/// Threads    one call at a time for each resources object, that of the index
///            too. Calls that change the index, or one of its fields, run
///            alone: searches before them have ended, on the device as well
/// Result     the same bits, whatever the resources
/// Stream     ordered on the stream of `resources`, and after the additions
///            that had returned before
/// Memory     what the index keeps for all searches (GpuIndexBitsFlatConfig) is
///            made once, by the first search that needs it; on resources other
///            than the index's it comes from cudaMalloc
/// Cost       as without; the first call on a device makes the streams, the
///            temporary memory (FAISS's default: 1.5 GiB) and the pinned memory
///            (256 MiB) of `resources`
struct SearchParametersBitsFlat : public faiss::SearchParameters {
    SearchParametersBitsFlat() = default;

    /// On these resources.
    explicit SearchParametersBitsFlat(
            std::shared_ptr<faiss::gpu::GpuResources> given)
            : resources(std::move(given)) {}

    /// On those of a provider (StandardGpuResources), which must not be null.
    explicit SearchParametersBitsFlat(
            faiss::gpu::GpuResourcesProvider* provider) {
        FAISS_THROW_IF_NOT_MSG(provider, "provider is a null pointer");
        resources = provider->getResources();
    }

    std::shared_ptr<faiss::gpu::GpuResources> resources; ///< of this search
    int64_t max_results = 0; ///< of a range search; 0: no limit
};

namespace detail {

/// The resources of a search with these parameters, which may be null, of an
/// index that has `own`.
inline const std::shared_ptr<faiss::gpu::GpuResources>& resourcesOf(
        const faiss::SearchParameters* params,
        const std::shared_ptr<faiss::gpu::GpuResources>& own) {
    const auto* ours = dynamic_cast<const SearchParametersBitsFlat*>(params);
    return ours && ours->resources ? ours->resources : own;
}

/// SearchParametersBitsFlat::max_results, or 0.
inline int64_t maxResultsOf(const faiss::SearchParameters* params) {
    const auto* ours = dynamic_cast<const SearchParametersBitsFlat*>(params);
    return ours ? ours->max_results : 0;
}

} // namespace detail

} // namespace faiss_bits::gpu
