#pragma once

#include <faiss/Index.h>
#include <faiss/impl/IDSelector.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/ivf/FilteredLists.h"
#include "faiss_bits/ivf/IvfIndexSearch.h"
#include "kernels/ivf/IvfKnn.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// What a search of inverted lists is asked for.
struct IvfSearch {
    idx_t n = 0; ///< of the whole call
    int k = 0;
    int nprobe = 0; ///< no more than there are lists
    const faiss::SearchParameters* quantizerParams = nullptr;
    const faiss::IDSelector* selector = nullptr;
    bool storePairs = false; ///< labels are list << 32 | place
    idx_t maxResults = 0;    ///< of a range search; 0: no limit
    idx_t mostVectors = 0;   ///< IvfKnnProblem::mostVectors
    bool anyLists = false;   ///< a list may be named more than once
    const FilteredLists* lists = nullptr; ///< of the whole call
};

/// Throws FaissException for what is no search, or would have to be ignored.
IvfSearch ivfSearchOf(
        const IvfIndex& index,
        idx_t n,
        idx_t k,
        const faiss::SearchParameters* params);

/// The same of a range search, whose parameters may limit its results.
IvfSearch ivfRangeOf(
        const IvfIndex& index,
        idx_t n,
        float radius,
        const faiss::SearchParameters* params);

/// max_results of parameters that an IVF index takes; 0 of others and of null.
idx_t ivfMaxResultsOf(const faiss::SearchParameters* params);

/// Throws FaissException for parameters with such a limit, where it would have
/// to be ignored.
void requireNoLimit(const faiss::SearchParameters* params);

/// What it searches, as a problem of all queries without arrays; mayTest as of
/// FilteredLists.
FilteredLists filteredListsOf(
        const IvfIndex& index,
        const GpuContext& context,
        const IvfSearch& search,
        bool mayTest = false);

} // namespace faiss_bits::gpu::detail
