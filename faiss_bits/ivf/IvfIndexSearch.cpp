// What a search of inverted lists does, whatever index they are of.

#include <algorithm>
#include <climits>
#include <functional>
#include <memory>
#include <vector>

#include <cuda_runtime_api.h>
#include <faiss/IndexIVF.h>
#include <faiss/gpu/GpuIndexIVF.h>
#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/common/WhenEnqueued.h"
#include "faiss_bits/flat/Centroids.h"
#include "faiss_bits/flat/GpuSearchCounters.h"
#include "faiss_bits/ivf/CoarseSearch.h"
#include "faiss_bits/ivf/FilteredLists.h"
#include "faiss_bits/ivf/IvfIndexSearch.h"
#include "faiss_bits/ivf/IvfLastPlan.h"
#include "faiss_bits/ivf/IvfLimits.h"
#include "faiss_bits/ivf/IvfSearch.h"
#include "faiss_bits/ivf/ListFilter.h"
#include "faiss_bits/ivf/ListStorage.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfDirect.h"
#include "kernels/ivf/IvfKnn.h"

namespace faiss_bits::gpu::detail {

using faiss::gpu::DeviceScope;

namespace {

/// Whether labels are places until the host has put ids there.
bool changesLabels(const IvfIndex& index, const IvfSearch& search) {
    return index.indices == faiss::gpu::INDICES_CPU && !search.storePairs;
}

/// The ids of labels that are places, where the host has them.
void replaceLabels(
        const IvfIndex& index,
        const GpuContext& context,
        const IvfSearch& search,
        idx_t n,
        idx_t* labels) {
    if (!changesLabels(index, search)) {
        return;
    }
    std::vector<idx_t> places(size_t(n) * search.k);
    const size_t bytes = places.size() * sizeof(idx_t);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            places.data(),
            labels,
            bytes,
            cudaMemcpyDeviceToHost,
            context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    replacePlaces(*index.base, idx_t(places.size()), places.data());
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            labels,
            places.data(),
            bytes,
            cudaMemcpyHostToDevice,
            context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
}

/// Direct searches alone take a test of ids: of more queries than they have,
/// bits are made in any case. By tables they have more, and read bits then.
FilteredLists filteredListsOfSearch(
        const IvfIndex& index,
        const GpuContext& context,
        const IvfSearch& search) {
    return filteredListsOf(
            index,
            context,
            search,
            search.n <= mostIvfDirectQueries(index.lists, search.k));
}

/// All but the lists of a problem without probes is set.
void searchLists(
        const IvfIndex& index,
        const GpuContext& context,
        const IvfSearch& search,
        IvfKnnProblem problem,
        const std::function<void()>& enqueued) {
    const bool hasLists = problem.probes != nullptr;
    Centroids centroids;
    // A quantizer may have other vectors than one a list.
    if (!hasLists && !search.quantizerParams &&
        index.quantizer->ntotal == problem.lists.numLists &&
        index.quantizer->d == index.d) {
        centroids = centroidsFor(context, *index.quantizer);
        problem.centroids = centroids.vectors;
        problem.centroidMetric = centroids.metric;
    }
    const size_t probes = size_t(problem.numQueries) * problem.nprobe;
    const size_t probeBytes =
            hasLists ? 0 : WorkspaceSlices::roundUp(probes * sizeof(idx_t));
    const size_t budget = std::min(
            scratchBudget(context), kMostScratch - search.lists->bytes());
    const IvfKnnPlan plan = planOrLastPlan(
            problem, budget > probeBytes ? budget - probeBytes : 0);
    std::unique_ptr<ListFilter> filter; // in place of a test
    if (problem.lists.idTest.isThere() && !plan.direct) {
        problem.lists.idTest = {};
        filter = std::make_unique<ListFilter>(
                context, *search.selector, problem.lists, *index.base);
        problem.lists = filter->lists();
    }
    TemporaryMemory lists;
    if (plan.findsLists()) {
        // The distances to all are exact.
        centroids.counters->add(
                problem.numQueries,
                problem.numQueries * problem.lists.numLists);
    } else if (!hasLists) {
        lists = allocTemporary(context, probes * sizeof(idx_t));
        auto toLists = allocTemporary(context, probes * sizeof(float));
        searchCoarse(
                context,
                *index.quantizer,
                problem.numQueries,
                problem.queries,
                problem.nprobe,
                static_cast<float*>(toLists.get()),
                static_cast<idx_t*>(lists.get()),
                search.quantizerParams);
        problem.probes = static_cast<const idx_t*>(lists.get());
    }
    auto scratch = allocTemporary(context, plan.bytes);
    runIvfKnn(
            plan,
            problem,
            Workspace{scratch.get(), plan.bytes},
            context.stream,
            enqueued);
}

/// enqueued  as of runIvfKnn, for the last queries
void searchPage(
        const IvfIndex& index,
        const GpuContext& context,
        const IvfSearch& search,
        idx_t n,
        const float* x,
        const idx_t* assign,
        float* distances,
        idx_t* labels,
        const std::function<void()>& enqueued) {
    const idx_t most = std::max<idx_t>(kMostProbes / search.nprobe, 1);
    for (idx_t q = 0; q < n; q += most) {
        const idx_t rows = std::min(most, n - q);
        IvfKnnProblem problem = search.lists->problem();
        problem.numQueries = rows;
        problem.queries = x + q * index.d;
        problem.outDistances = distances + q * search.k;
        problem.outIds = labels + q * search.k;
        if (assign) {
            problem.probes = assign + q * search.nprobe;
        }
        const bool isLast = q + rows == n;
        searchLists(
                index, context, search, problem, isLast ? enqueued : nullptr);
        replaceLabels(index, context, search, rows, problem.outIds);
    }
}

void searchPaged(
        const IvfIndex& index,
        IvfSearch search,
        const float* x,
        const idx_t* assign,
        float* distances,
        idx_t* labels) {
    DeviceScope scope(index.device);
    const GpuContext context = contextOf(*index.resources, index.device);
    std::function<void()> enqueued = WhenEnqueued::take();
    if (changesLabels(index, search)) {
        enqueued = nullptr; // the host does, when all is found
    }
    withFaissErrors([&] {
        const FilteredLists lists =
                filteredListsOfSearch(index, context, search);
        search.lists = &lists;
        PagedCall call(context);
        const int queries = call.input("x", x, sizeof(float) * index.d);
        const int givenLists = assign
                ? call.input("assign", assign, sizeof(idx_t) * search.nprobe)
                : -1;
        const int outDistances =
                call.output("distances", distances, sizeof(float) * search.k);
        const int outLabels =
                call.output("labels", labels, sizeof(idx_t) * search.k);
        PageLimits limits;
        limits.rows = search.n;
        limits.workPerRow = searchWork(
                search.mostVectors + (assign ? 0 : idx_t(index.nlist)),
                index.d,
                search.k);
        limits.pageBytes = index.minPagedSize;
        limits.waits = true; // for the queries to search again
        call.run(limits, [&](const Page& page) {
            const bool isLast = page.first + page.rows == search.n;
            searchPage(
                    index,
                    context,
                    search,
                    page.rows,
                    page.as<const float>(queries),
                    assign ? page.as<const idx_t>(givenLists) : nullptr,
                    page.as<float>(outDistances),
                    page.as<idx_t>(outLabels),
                    isLast ? enqueued : nullptr);
        });
    });
}

} // namespace

IvfIndex ivfIndexOf(
        const faiss::gpu::GpuIndexIVF& index,
        faiss::gpu::GpuResources& resources,
        size_t minPagedSize,
        faiss::gpu::IndicesOptions indices) {
    IvfIndex view;
    view.resources = &resources;
    view.device = index.getDevice();
    view.minPagedSize = minPagedSize;
    view.d = int(index.d);
    view.metric = index.metric_type;
    view.nlist = size_t(index.nlist);
    view.nprobe = size_t(index.nprobe);
    view.ntotal = index.ntotal;
    view.quantizer = index.quantizer;
    view.indices = indices;
    return view;
}

void searchIvf(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) {
    const IvfSearch search = ivfSearchOf(index, n, k, params);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(distances, "distances");
    requireNotNull(labels, "labels");
    searchPaged(index, search, x, nullptr, distances, labels);
}

void assignIvf(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        idx_t* labels,
        idx_t k) {
    const IvfSearch search = ivfSearchOf(index, n, k, nullptr);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(labels, "labels");
    searchPaged(index, search, x, nullptr, nullptr, labels);
}

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
        const faiss::IndexIVFStats* stats) {
    FAISS_THROW_IF_NOT_MSG(!stats, "stats: searches on the GPU count nothing");
    IvfSearch search = ivfSearchOf(index, n, k, params);
    FAISS_THROW_IF_NOT_MSG(
            !search.quantizerParams,
            "params->quantizer_params: the lists are given");
    search.storePairs = storePairs;
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(assign, "assign");
    requireNotNull(distances, "distances");
    requireNotNull(labels, "labels");
    // A row of `assign` has as many lists as were asked for.
    const size_t probes = params ? params->nprobe : size_t(index.nprobe);
    FAISS_THROW_IF_NOT_FMT(
            probes <= size_t(INT_MAX), "nprobe = %zu is too much", probes);
    search.nprobe = int(probes);
    search.anyLists = true;
    search.mostVectors = idx_t(probes) * mostVectorsOf(*index.base, 1, false);
    searchPaged(index, search, x, assign, distances, labels);
}

void searchIvfOnDevice(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) {
    IvfSearch search = ivfSearchOf(index, n, k, params);
    withFaissErrors([&] {
        const GpuContext context = contextOf(*index.resources, index.device);
        const FilteredLists lists =
                filteredListsOfSearch(index, context, search);
        search.lists = &lists;
        searchPage(
                index,
                context,
                search,
                n,
                x,
                nullptr,
                distances,
                labels,
                nullptr);
    });
}

} // namespace faiss_bits::gpu::detail
