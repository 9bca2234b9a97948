// Searches of GpuIndexBitsIVFFlat.

#include <algorithm>
#include <climits>
#include <typeinfo>
#include <vector>

#include <cuda_runtime_api.h>
#include <faiss/IndexIVF.h>
#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/ivf/CoarseSearch.h"
#include "faiss_bits/ivf/FilteredLists.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"
#include "faiss_bits/ivf/IvfLimits.h"
#include "faiss_bits/ivf/IvfSearch.h"
#include "faiss_bits/ivf/ListStorage.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfKnn.h"

namespace faiss_bits::gpu {

using detail::allocTemporary;
using detail::FilteredLists;
using detail::GpuContext;
using detail::IvfSearch;
using detail::kMostProbes;
using detail::kMostScratch;
using detail::Page;
using detail::PagedCall;
using detail::PageLimits;
using detail::requireNotNull;
using detail::withFaissErrors;
using faiss::gpu::DeviceScope;

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

IvfSearch GpuIndexBitsIVFFlat::searchOf_(
        idx_t n,
        idx_t k,
        const faiss::SearchParameters* params) const {
    FAISS_THROW_IF_NOT_FMT(n >= 0, "n = %lld is negative", (long long)n);
    FAISS_THROW_IF_NOT_FMT(
            k >= 1 && k < INT_MAX,
            "k = %lld is outside 1..%d",
            (long long)k,
            INT_MAX - 1);
    FAISS_THROW_IF_NOT_MSG(is_trained && index_, "the index is not trained");
    if (params) {
        requireParams(params);
    }
    IvfSearch search;
    search.n = n;
    search.k = int(k);
    search.selector = params ? params->sel : nullptr;
    size_t probes = size_t(nprobe);
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
    search.nprobe = int(std::min(probes, size_t(nlist)));
    const bool areUneven = double(detail::longestOf(*baseIndex_)) * nlist >
            kUneven * double(ntotal);
    search.mostVectors = detail::mostVectorsOf(
            *baseIndex_, search.nprobe, n >= kManyQueries || areUneven);
    return search;
}

void GpuIndexBitsIVFFlat::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    const IvfSearch search = searchOf_(n, k, params);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(distances, "distances");
    requireNotNull(labels, "labels");
    searchPaged_(search, x, nullptr, distances, labels);
}

void GpuIndexBitsIVFFlat::assign(
        idx_t n,
        const float* x,
        idx_t* labels,
        idx_t k) const {
    const IvfSearch search = searchOf_(n, k, nullptr);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(labels, "labels");
    searchPaged_(search, x, nullptr, nullptr, labels);
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
    FAISS_THROW_IF_NOT_FMT(
            numericType == faiss::NumericType::Float32,
            "numericType = %d is not supported: Float32 (%d) is",
            int(numericType),
            int(faiss::NumericType::Float32));
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
        faiss::IndexIVFStats* stats
#endif
) const {
#if FAISS_BITS_FAISS_HAS_IVF_INTERFACE
    FAISS_THROW_IF_NOT_MSG(!stats, "stats: searches on the GPU count nothing");
#endif
    IvfSearch search = searchOf_(n, k, params);
    FAISS_THROW_IF_NOT_MSG(
            !search.quantizerParams,
            "params->quantizer_params: the lists are given");
    search.storePairs = store_pairs;
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(assign, "assign");
    requireNotNull(distances, "distances");
    requireNotNull(labels, "labels");
    // A row of `assign` has as many lists as were asked for.
    const size_t probes = params ? params->nprobe : size_t(nprobe);
    FAISS_THROW_IF_NOT_FMT(
            probes <= size_t(INT_MAX), "nprobe = %zu is too much", probes);
    search.nprobe = int(probes);
    search.anyLists = true;
    search.mostVectors =
            idx_t(probes) * detail::mostVectorsOf(*baseIndex_, 1, false);
    searchPaged_(search, x, assign, distances, labels);
}

void GpuIndexBitsIVFFlat::searchPaged_(
        IvfSearch search,
        const float* x,
        const idx_t* assign,
        float* distances,
        idx_t* labels) const {
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        const FilteredLists lists = listsOf_(context, search);
        search.lists = &lists;
        PagedCall call(context);
        const int queries = call.input("x", x, sizeof(float) * d);
        const int givenLists = assign
                ? call.input("assign", assign, sizeof(idx_t) * search.nprobe)
                : -1;
        const int outDistances =
                call.output("distances", distances, sizeof(float) * search.k);
        const int outLabels =
                call.output("labels", labels, sizeof(idx_t) * search.k);
        PageLimits limits;
        limits.rows = search.n;
        limits.workPerRow = detail::searchWork(
                search.mostVectors + (assign ? 0 : nlist), d, search.k);
        limits.pageBytes = minPagedSize_;
        call.run(limits, [&](const Page& page) {
            searchPage_(
                    search,
                    page.rows,
                    page.as<const float>(queries),
                    assign ? page.as<const idx_t>(givenLists) : nullptr,
                    page.as<float>(outDistances),
                    page.as<idx_t>(outLabels));
        });
    });
}

void GpuIndexBitsIVFFlat::searchImpl_(
        ImplSize n,
        const float* x,
        int k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    IvfSearch search = searchOf_(n, k, params);
    withFaissErrors([&] {
        const FilteredLists lists = listsOf_(
                detail::contextOf(*resources_, config_.device), search);
        search.lists = &lists;
        searchPage_(search, n, x, nullptr, distances, labels);
    });
}

IvfKnnProblem GpuIndexBitsIVFFlat::problemOf_(
        const GpuContext& context,
        const IvfSearch& search) const {
    IvfKnnProblem problem;
    problem.metric = detail::requireMetric(metric_type);
    problem.lists = lists_();
    problem.numQueries = search.n;
    problem.nprobe = search.nprobe;
    problem.k = search.k;
    problem.mostVectors = search.mostVectors;
    problem.longestList = detail::longestOf(*baseIndex_);
    problem.mayWait = !detail::isCaptured(context.stream);
    problem.device = deviceTraits(config_.device);
    return problem;
}

FilteredLists GpuIndexBitsIVFFlat::listsOf_(
        const GpuContext& context,
        const IvfSearch& search) const {
    const IvfKnnProblem problem = problemOf_(context, search);
    return FilteredLists(
            context,
            search.selector,
            *baseIndex_,
            problem,
            search.storePairs ? ListIds::Places : problem.lists.idKind,
            search.anyLists,
            kMostScratch);
}

void GpuIndexBitsIVFFlat::searchPage_(
        const IvfSearch& search,
        idx_t n,
        const float* x,
        const idx_t* assign,
        float* distances,
        idx_t* labels) const {
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    const idx_t most = std::max<idx_t>(kMostProbes / search.nprobe, 1);
    for (idx_t q = 0; q < n; q += most) {
        const idx_t rows = std::min(most, n - q);
        const float* queries = x + q * d;
        float* outDistances = distances + q * search.k;
        idx_t* outLabels = labels + q * search.k;
        if (assign) {
            searchLists_(
                    context,
                    search,
                    rows,
                    queries,
                    assign + q * search.nprobe,
                    outDistances,
                    outLabels);
            continue;
        }
        const size_t probes = size_t(rows) * search.nprobe;
        auto lists = allocTemporary(context, probes * sizeof(idx_t));
        {
            auto toLists = allocTemporary(context, probes * sizeof(float));
            detail::searchCoarse(
                    context,
                    *quantizer,
                    rows,
                    queries,
                    search.nprobe,
                    static_cast<float*>(toLists.get()),
                    static_cast<idx_t*>(lists.get()),
                    search.quantizerParams);
        }
        searchLists_(
                context,
                search,
                rows,
                queries,
                static_cast<const idx_t*>(lists.get()),
                outDistances,
                outLabels);
    }
}

void GpuIndexBitsIVFFlat::searchLists_(
        const GpuContext& context,
        const IvfSearch& search,
        idx_t n,
        const float* x,
        const idx_t* assign,
        float* distances,
        idx_t* labels) const {
    IvfKnnProblem problem = problemOf_(context, search);
    search.lists->apply(problem);
    problem.numQueries = n;
    problem.queries = x;
    problem.probes = assign;
    problem.outDistances = distances;
    problem.outIds = labels;
    const IvfKnnPlan plan = planIvfKnn(
            problem,
            std::min(
                    detail::scratchBudget(context),
                    kMostScratch - search.lists->bytes()));
    auto scratch = allocTemporary(context, plan.bytes);
    runIvfKnn(
            plan,
            problem,
            Workspace{scratch.get(), plan.bytes},
            context.stream);
    if (ivfConfig_.indicesOptions == faiss::gpu::INDICES_CPU &&
        !search.storePairs) {
        std::vector<idx_t> places(size_t(n) * search.k);
        const size_t bytes = places.size() * sizeof(idx_t);
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                places.data(),
                labels,
                bytes,
                cudaMemcpyDeviceToHost,
                context.stream));
        BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
        detail::replacePlaces(*baseIndex_, idx_t(places.size()), places.data());
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                labels,
                places.data(),
                bytes,
                cudaMemcpyHostToDevice,
                context.stream));
        BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    }
}

} // namespace faiss_bits::gpu
