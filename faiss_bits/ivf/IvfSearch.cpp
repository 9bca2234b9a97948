#include "faiss_bits/ivf/IvfSearch.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <memory>
#include <typeinfo>

#include <faiss/IndexIVF.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/LastPlans.h"
#include "faiss_bits/flat/SearchParametersBitsFlat.h"
#include "faiss_bits/ivf/IvfLimits.h"
#include "faiss_bits/ivf/IvfRangeArguments.h"
#include "faiss_bits/ivf/ListStorage.h"
#include "faiss_bits/ivf/SearchParametersBitsIVF.h"
#include "faiss_bits/range/RangeCall.h"

namespace faiss_bits::gpu::detail {

namespace {

/// From so many queries on it pays to look at every list's length, and where
/// the longest is so many times the average, unless few vectors are searched
/// in any case.
constexpr idx_t kManyQueries = 64;
constexpr double kUneven = 4;
constexpr idx_t kFewVectors = idx_t(1) << 20;

/// Throws for what would have to be ignored.
void requireParams(const faiss::SearchParameters* params) {
    const auto* ivf = dynamic_cast<const faiss::SearchParametersIVF*>(params);
    const auto* flat = dynamic_cast<const SearchParametersBitsFlat*>(params);
    const auto* product =
            dynamic_cast<const faiss::IVFPQSearchParameters*>(params);
    const std::type_info& type = typeid(*params);
    FAISS_THROW_IF_NOT_FMT(
            flat || product || type == typeid(faiss::SearchParametersIVF) ||
                    type == typeid(SearchParametersBitsIVF) ||
                    type == typeid(faiss::SearchParameters),
            "params is a %s: an IVF index takes SearchParametersIVF",
            faiss::demangle_cpp_symbol(type.name()).c_str());
    FAISS_THROW_IF_NOT_FMT(
            !product || product->polysemous_ht == 0,
            "params->polysemous_ht = %d: only 0 is supported, no filter by "
            "Hamming distances",
            product ? product->polysemous_ht : 0);
    FAISS_THROW_IF_NOT_MSG(
            !flat || !flat->resources,
            "params->resources are set: an IVF index searches on its own");
    if (ivf) {
        FAISS_THROW_IF_NOT_FMT(
                ivf->max_codes == 0,
                "params->max_codes = %zu: only 0 is supported, all of a list",
                size_t(ivf->max_codes));
        FAISS_THROW_IF_NOT_MSG(
                !limitsLists(*ivf),
                "params->max_lists_num is set: only 0 is supported, nprobe "
                "lists");
        FAISS_THROW_IF_NOT_MSG(
                !faiss_bits::detail::hasListContext(*ivf),
                "params->inverted_list_context is set: lists on a GPU take "
                "none");
        requirePositive(ivf->nprobe, "params->nprobe");
    }
}

/// mostVectorsOf(), or what that was for the same lists. Their lengths lie in
/// as many places of the host's memory, and to read those of 1,024 that nobody
/// has read for a while takes some 15 us, in front of a search's first kernel.
idx_t mostVectorsNow(const IvfIndex& index, idx_t nprobe) {
    struct Lists {
        std::weak_ptr<const faiss::gpu::IVFBase> owner;
        idx_t ntotal;
        uint64_t losses;
        idx_t longest;
        idx_t nprobe;
    };
    const auto areAlike = [](const Lists& a, const Lists& b) {
        return !a.owner.owner_before(b.owner) &&
                !b.owner.owner_before(a.owner) && a.ntotal == b.ntotal &&
                a.losses == b.losses && a.longest == b.longest &&
                a.nprobe == b.nprobe;
    };
    static thread_local LastPlans<Lists, idx_t> known;
    return known.get(
            {index.owner,
             index.ntotal,
             numListLosses(),
             longestOf(*index.base),
             nprobe},
            0,
            areAlike,
            [&](const Lists&, size_t) {
                return mostVectorsOf(*index.base, nprobe, true);
            });
}

/// A search of either kind.
IvfSearch anySearchOf(
        const IvfIndex& index,
        idx_t n,
        idx_t k,
        const faiss::SearchParameters* params) {
    requireCount(n, "n");
    requireWithin(k, 1, INT_MAX - 1, "k");
    FAISS_THROW_IF_NOT_MSG(index.base, "the index is not trained");
    if (params) {
        requireParams(params);
    }
    IvfSearch search;
    search.n = n;
    search.k = int(k);
    search.selector = params ? params->sel : nullptr;
    size_t probes = size_t(index.nprobe);
    if (const auto* ivf =
                dynamic_cast<const faiss::SearchParametersIVF*>(params)) {
        probes = ivf->nprobe;
        search.quantizerParams = ivf->quantizer_params;
    }
    requireWithin(probes, 1, INT_MAX, "nprobe");
    search.nprobe = int(std::min(probes, index.nlist));
    const idx_t longest = longestOf(*index.base);
    const bool areUneven = double(longest) * double(index.nlist) >
                    kUneven * double(index.ntotal) &&
            double(longest) * double(search.nprobe) * double(n) >
                    double(kFewVectors);
    search.mostVectors = n >= kManyQueries || areUneven
            ? mostVectorsNow(index, search.nprobe)
            : mostVectorsOf(*index.base, search.nprobe, false);
    return search;
}

/// A search of all queries, without arrays.
IvfKnnProblem ivfProblemOf(
        const IvfIndex& index,
        const GpuContext& context,
        const IvfSearch& search) {
    IvfKnnProblem problem;
    problem.metric = requireMetric(index.metric);
    problem.lists = index.lists;
    problem.lists.numVectors = index.ntotal;
    problem.numQueries = search.n;
    problem.nprobe = search.nprobe;
    problem.k = search.k;
    problem.mostVectors = search.mostVectors;
    problem.longestList = longestOf(*index.base);
    problem.mayWait = !isCaptured(context.stream);
    problem.device = deviceTraits(index.device);
    return problem;
}

} // namespace

IvfSearch ivfSearchOf(
        const IvfIndex& index,
        idx_t n,
        idx_t k,
        const faiss::SearchParameters* params) {
    requireNoLimit(params);
    return anySearchOf(index, n, k, params);
}

IvfSearch ivfRangeOf(
        const IvfIndex& index,
        idx_t n,
        float radius,
        const faiss::SearchParameters* params) {
    IvfSearch search = anySearchOf(index, n, 1, params);
    faiss_bits::detail::requireAllLists(params);
    search.maxResults = ivfMaxResultsOf(params);
    requireRange(radius, search.maxResults);
    return search;
}

idx_t ivfMaxResultsOf(const faiss::SearchParameters* params) {
    const auto* ours = dynamic_cast<const SearchParametersBitsIVF*>(params);
    return ours ? ours->max_results : maxResultsOf(params);
}

void requireNoLimit(const faiss::SearchParameters* params) {
    const idx_t most = ivfMaxResultsOf(params);
    FAISS_THROW_IF_NOT_FMT(
            most == 0,
            "params->max_results = %lld is for range_search of one index",
            (long long)most);
}

FilteredLists filteredListsOf(
        const IvfIndex& index,
        const GpuContext& context,
        const IvfSearch& search,
        bool mayTest) {
    const IvfKnnProblem problem = ivfProblemOf(index, context, search);
    return FilteredLists(
            context,
            search.selector,
            *index.base,
            problem,
            search.storePairs ? ListIds::Places : problem.lists.idKind,
            search.anyLists,
            mayTest,
            kMostScratch);
}

} // namespace faiss_bits::gpu::detail
