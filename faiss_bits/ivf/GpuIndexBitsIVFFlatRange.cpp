// Range search of GpuIndexBitsIVFFlat.

#include <algorithm>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/Waiting.h"
#include "faiss_bits/ivf/CoarseSearch.h"
#include "faiss_bits/ivf/FilteredLists.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"
#include "faiss_bits/ivf/IvfLimits.h"
#include "faiss_bits/ivf/IvfSearch.h"
#include "faiss_bits/ivf/ListStorage.h"
#include "faiss_bits/ivf/RangeResults.h"

namespace faiss_bits::gpu {

using detail::allocTemporary;
using detail::GpuContext;
using detail::IvfIndex;
using detail::IvfSearch;
using detail::RangeResults;

namespace {

/// Queries that are copied to the device at a time.
constexpr size_t kQueryBytes = size_t(64) << 20;

/// range_search() of some queries.
void searchPart(
        const IvfIndex& index,
        const GpuContext& context,
        const IvfSearch& search,
        idx_t n,
        const float* x,
        float radius,
        RangeResults& results) {
    const detail::DeviceArray queries(
            context, "x", x, size_t(n) * index.d * sizeof(float));
    const size_t probes = size_t(n) * search.nprobe;
    auto lists = allocTemporary(context, probes * sizeof(idx_t));
    {
        auto toLists = allocTemporary(context, probes * sizeof(float));
        detail::searchCoarse(
                context,
                *index.quantizer,
                n,
                static_cast<const float*>(queries.data()),
                search.nprobe,
                static_cast<float*>(toLists.get()),
                static_cast<idx_t*>(lists.get()),
                search.quantizerParams);
    }
    IvfKnnProblem problem = detail::ivfProblemOf(index, context, search);
    search.lists->apply(problem);
    problem.numQueries = n;
    problem.queries = static_cast<const float*>(queries.data());
    problem.probes = static_cast<const idx_t*>(lists.get());
    const IvfRangePlan plan = planIvfRange(
            problem,
            std::min(
                    detail::scratchBudget(context),
                    detail::kMostScratch - search.lists->bytes()));
    auto scratch = allocTemporary(context, plan.bytes);
    runIvfRange(
            plan,
            problem,
            radius,
            Workspace{scratch.get(), plan.bytes},
            context.stream,
            [&](const IvfRangePart& part) {
                results.add(context, part);
                detail::throwIfInterrupted();
            });
    detail::waitFor(context.stream); // for queries that are on the host
}

} // namespace

void GpuIndexBitsIVFFlat::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    const IvfIndex index = ivfIndex_();
    IvfSearch search = detail::ivfSearchOf(index, n, 1, params);
    detail::requireRangeResult(result, n);
    if (n > 0) {
        detail::requireNotNull(x, "x");
    }
    faiss::gpu::DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    detail::withFaissErrors([&] {
        FAISS_THROW_IF_NOT_MSG(
                !detail::isCaptured(context.stream),
                "range_search waits for the device, which a capture of its "
                "stream forbids");
        RangeResults results(n);
        if (n > 0) {
            const detail::FilteredLists lists =
                    detail::filteredListsOf(index, context, search);
            search.lists = &lists;
            const idx_t most = std::clamp<idx_t>(
                    std::min(
                            detail::kMostProbes / search.nprobe,
                            idx_t(kQueryBytes / (sizeof(float) * d))),
                    1,
                    n);
            for (idx_t q = 0; q < n; q += most) {
                searchPart(
                        index,
                        context,
                        search,
                        std::min(most, n - q),
                        x + q * d,
                        radius,
                        results);
            }
        }
        if (ivfConfig_.indicesOptions == faiss::gpu::INDICES_CPU) {
            detail::replacePlaces(*baseIndex_, results.size(), results.ids());
        }
        results.moveTo(*result);
    });
}

} // namespace faiss_bits::gpu
