// Range search of inverted lists, whatever index they are of.

#include <algorithm>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/Waiting.h"
#include "faiss_bits/ivf/CoarseSearch.h"
#include "faiss_bits/ivf/FilteredLists.h"
#include "faiss_bits/ivf/IvfIndexVectors.h"
#include "faiss_bits/ivf/IvfLimits.h"
#include "faiss_bits/ivf/IvfSearch.h"
#include "faiss_bits/ivf/ListStorage.h"
#include "faiss_bits/range/RangeCall.h"
#include "faiss_bits/range/RangeResults.h"
#include "kernels/ivf/IvfRange.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Queries that are copied to the device at a time.
constexpr size_t kQueryBytes = size_t(64) << 20;

/// range_search() of some queries, from number `first` on.
void searchPart(
        const IvfIndex& index,
        const GpuContext& context,
        const IvfSearch& search,
        idx_t first,
        idx_t n,
        const float* x,
        float radius,
        RangeResults& results) {
    const DeviceArray queries(
            context, "x", x, size_t(n) * index.d * sizeof(float));
    const size_t probes = size_t(n) * search.nprobe;
    auto lists = allocTemporary(context, probes * sizeof(idx_t));
    {
        auto toLists = allocTemporary(context, probes * sizeof(float));
        searchCoarse(
                context,
                *index.quantizer,
                n,
                static_cast<const float*>(queries.data()),
                search.nprobe,
                static_cast<float*>(toLists.get()),
                static_cast<idx_t*>(lists.get()),
                search.quantizerParams);
    }
    IvfKnnProblem problem = ivfProblemOf(index, context, search);
    search.lists->apply(problem);
    problem.numQueries = n;
    problem.queries = static_cast<const float*>(queries.data());
    problem.probes = static_cast<const idx_t*>(lists.get());
    const IvfRangePlan plan = planIvfRange(
            problem,
            std::min(
                    scratchBudget(context),
                    kMostScratch - search.lists->bytes()));
    auto scratch = allocTemporary(context, plan.bytes);
    runIvfRange(
            plan,
            problem,
            radius,
            Workspace{scratch.get(), plan.bytes},
            context.stream,
            [&](const IvfRangePart& part) {
                results.add(
                        context,
                        first + part.first,
                        part.counts,
                        part.total,
                        part.distances,
                        part.ids);
                throwIfInterrupted();
            });
    waitFor(context.stream); // for queries that are on the host
}

} // namespace

void rangeSearchIvf(
        const IvfIndex& index,
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) {
    IvfSearch search = ivfSearchOf(index, n, 1, params);
    requireRangeResult(result, n);
    if (n > 0) {
        requireNotNull(x, "x");
    }
    faiss::gpu::DeviceScope scope(index.device);
    const GpuContext context = contextOf(*index.resources, index.device);
    withFaissErrors([&] {
        requireWaits(context);
        RangeResults results(n);
        if (n > 0) {
            const FilteredLists lists = filteredListsOf(index, context, search);
            search.lists = &lists;
            const idx_t most = std::clamp<idx_t>(
                    std::min(
                            kMostProbes / search.nprobe,
                            idx_t(kQueryBytes / (sizeof(float) * index.d))),
                    1,
                    n);
            for (idx_t q = 0; q < n; q += most) {
                searchPart(
                        index,
                        context,
                        search,
                        q,
                        std::min(most, n - q),
                        x + q * index.d,
                        radius,
                        results);
            }
        }
        if (index.indices == faiss::gpu::INDICES_CPU) {
            results.changeIds([&](idx_t* ids, idx_t count) {
                replacePlaces(*index.base, count, ids);
            });
        }
        results.moveTo(*result);
    });
}

} // namespace faiss_bits::gpu::detail
