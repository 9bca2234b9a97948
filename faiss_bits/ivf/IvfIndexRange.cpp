// Range search of inverted lists, whatever index they are of.

#include <algorithm>
#include <vector>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/ivf/CoarseSearch.h"
#include "faiss_bits/ivf/FilteredLists.h"
#include "faiss_bits/ivf/IvfIndexVectors.h"
#include "faiss_bits/ivf/IvfLimits.h"
#include "faiss_bits/ivf/IvfSearch.h"
#include "faiss_bits/ivf/ListStorage.h"
#include "faiss_bits/range/RangeCall.h"
#include "faiss_bits/range/RangeResults.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfRange.h"

namespace faiss_bits::gpu::detail {

namespace {

/// What a search takes at most. To the host the results of a part go through
/// the rest of its scratch: 12 bytes for each of its distances, which take 4.
constexpr size_t kHostShare = 4;

size_t scratchOf(
        const GpuContext& context,
        const FilteredLists& lists,
        bool toHost) {
    const size_t most = toHost ? kMostScratch : kMostDeviceRangeScratch;
    return std::min(scratchBudget(context), most - lists.bytes()) /
            (toHost ? kHostShare : 1);
}

/// Searches some queries, x on the device.
void searchPart(
        const IvfIndex& index,
        const GpuContext& context,
        const IvfSearch& search,
        idx_t n,
        const float* x,
        float radius,
        bool toHost,
        RangeSink& sink) {
    const size_t probes = size_t(n) * search.nprobe;
    auto lists = allocTemporary(context, probes * sizeof(idx_t));
    {
        auto toLists = allocTemporary(context, probes * sizeof(float));
        searchCoarse(
                context,
                *index.quantizer,
                n,
                x,
                search.nprobe,
                static_cast<float*>(toLists.get()),
                static_cast<idx_t*>(lists.get()),
                search.quantizerParams);
    }
    IvfKnnProblem problem = search.lists->problem();
    problem.numQueries = n;
    problem.queries = x;
    problem.probes = static_cast<const idx_t*>(lists.get());
    const IvfRangePlan plan =
            planIvfRange(problem, scratchOf(context, *search.lists, toHost));
    auto scratch = allocTemporary(context, plan.bytes);
    runIvfRange(
            plan,
            problem,
            radius,
            Workspace{scratch.get(), plan.bytes},
            context.stream,
            sink);
}

template <class Sink>
void searchAll(
        const IvfIndex& index,
        const GpuContext& context,
        IvfSearch search,
        const float* x,
        float radius,
        bool toHost,
        Sink& sink) {
    requireNoCapture(context.stream, "range_search");
    if (search.n == 0) {
        return;
    }
    const FilteredLists lists = filteredListsOf(index, context, search);
    search.lists = &lists;
    const idx_t most = std::max<idx_t>(kMostProbes / search.nprobe, 1);
    LimitedRangeSink limited(sink, search.maxResults);
    forQueryPages(
            context,
            "x",
            search.n,
            x,
            sizeof(float) * size_t(index.d),
            [&](idx_t first, idx_t count, const void* page) {
                const auto* queries = static_cast<const float*>(page);
                for (idx_t q = 0; q < count; q += most) {
                    sink.setFirst(first + q);
                    searchPart(
                            index,
                            context,
                            search,
                            std::min(most, count - q),
                            queries + q * index.d,
                            radius,
                            toHost,
                            limited);
                }
            });
    limited.requireEnough();
}

/// INDICES_CPU: ids in place of lists and places. Waits.
void replacePlacesOnDevice(
        const IvfIndex& index,
        const GpuContext& context,
        const GpuRangeResult& result) {
    std::vector<idx_t> labels;
    for (const GpuRangeResult::Part& part : result.parts) {
        labels.resize(size_t(part.size));
        const size_t bytes = labels.size() * sizeof(idx_t);
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                labels.data(),
                part.labels,
                bytes,
                cudaMemcpyDeviceToHost,
                context.stream));
        BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
        replacePlaces(*index.base, part.size, labels.data());
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                part.labels,
                labels.data(),
                bytes,
                cudaMemcpyHostToDevice,
                context.stream));
        BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    }
}

} // namespace

void rangeSearchIvf(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) {
    const IvfSearch search = ivfRangeOf(index, n, radius, params);
    requireRangeResult(result, n);
    if (n > 0) {
        requireNotNull(x, "x");
    }
    faiss::gpu::DeviceScope scope(index.device);
    const GpuContext context = contextOf(*index.resources, index.device);
    withFaissErrors([&] {
        RangeResults results(n);
        const bool areChanged = index.indices == faiss::gpu::INDICES_CPU;
        HostRangeSink sink(context, results, !areChanged);
        searchAll(index, context, search, x, radius, true, sink);
        if (areChanged) {
            results.changeIds([&](idx_t* ids, idx_t count) {
                replacePlaces(*index.base, count, ids);
            });
        }
        results.moveTo(*result);
    });
}

void rangeSearchIvfOnDevice(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        float radius,
        GpuRangeResult& result,
        const faiss::SearchParameters* params) {
    const IvfSearch search = ivfRangeOf(index, n, radius, params);
    if (n > 0) {
        requireNotNull(x, "x");
    }
    faiss::gpu::DeviceScope scope(index.device);
    const GpuContext context = contextOf(*index.resources, index.device);
    withFaissErrors([&] {
        DeviceRangeSink sink(result, n);
        searchAll(index, context, search, x, radius, false, sink);
        if (index.indices == faiss::gpu::INDICES_CPU) {
            replacePlacesOnDevice(index, context, result);
        }
        sink.finish();
    });
}

} // namespace faiss_bits::gpu::detail
