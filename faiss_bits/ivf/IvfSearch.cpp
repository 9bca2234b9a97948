#include "faiss_bits/ivf/IvfSearch.h"

#include <algorithm>
#include <climits>
#include <typeinfo>

#include <faiss/IndexIVF.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/ivf/IvfLimits.h"
#include "faiss_bits/ivf/ListStorage.h"

namespace faiss_bits::gpu::detail {

namespace {

/// From so many queries on it pays to look at every list's length, and where
/// the longest is so many times the average.
constexpr idx_t kManyQueries = 64;
constexpr double kUneven = 4;

/// Throws for what would have to be ignored.
void requireParams(const faiss::SearchParameters* params) {
    const auto* ivf = dynamic_cast<const faiss::SearchParametersIVF*>(params);
    FAISS_THROW_IF_NOT_FMT(
            ivf || typeid(*params) == typeid(faiss::SearchParameters),
            "params is a %s: an IVF index takes SearchParametersIVF",
            typeid(*params).name());
    if (ivf) {
        FAISS_THROW_IF_NOT_FMT(
                ivf->max_codes == 0,
                "params->max_codes = %zu: only 0 is supported, all of a list",
                size_t(ivf->max_codes));
        FAISS_THROW_IF_NOT_MSG(
                !limitsLists(*ivf),
                "params->max_lists_num is set: only 0 is supported, nprobe "
                "lists");
        FAISS_THROW_IF_NOT_FMT(
                ivf->nprobe >= 1,
                "params->nprobe = %zu, at least 1 is needed",
                size_t(ivf->nprobe));
    }
}

} // namespace

IvfSearch ivfSearchOf(
        const IvfIndex& index,
        idx_t n,
        idx_t k,
        const faiss::SearchParameters* params) {
    FAISS_THROW_IF_NOT_FMT(n >= 0, "n = %lld is negative", (long long)n);
    FAISS_THROW_IF_NOT_FMT(
            k >= 1 && k < INT_MAX,
            "k = %lld is outside 1..%d",
            (long long)k,
            INT_MAX - 1);
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
    FAISS_THROW_IF_NOT_FMT(
            probes >= 1 && probes <= size_t(INT_MAX),
            "nprobe = %zu is outside 1..%d",
            probes,
            INT_MAX);
    search.nprobe = int(std::min(probes, index.nlist));
    const bool areUneven =
            double(longestOf(*index.base)) * double(index.nlist) >
            kUneven * double(index.ntotal);
    search.mostVectors = mostVectorsOf(
            *index.base, search.nprobe, n >= kManyQueries || areUneven);
    return search;
}

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

FilteredLists filteredListsOf(
        const IvfIndex& index,
        const GpuContext& context,
        const IvfSearch& search) {
    const IvfKnnProblem problem = ivfProblemOf(index, context, search);
    return FilteredLists(
            context,
            search.selector,
            *index.base,
            problem,
            search.storePairs ? ListIds::Places : problem.lists.idKind,
            search.anyLists,
            kMostScratch);
}

} // namespace faiss_bits::gpu::detail
