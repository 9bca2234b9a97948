// Range search of GpuIndexBitsFlat.

#include <cstdint>
#include <optional>

#include <faiss/gpu/utils/DeviceUtils.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/flat/FlatChecks.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/flat/SearchFilter.h"
#include "faiss_bits/flat/VectorFacts.h"
#include "faiss_bits/range/RangeCall.h"
#include "faiss_bits/range/RangeResults.h"

namespace faiss_bits::gpu {

using detail::GpuContext;
using detail::withFaissErrors;
using faiss::gpu::DeviceScope;

/// Of checked arguments.
struct GpuIndexBitsFlat::RangeSearch_ {
    const GpuIndexBitsFlat& index;
    const GpuContext& context;

    template <class Sink>
    void run(
            idx_t n,
            const float* x,
            float radius,
            const faiss::SearchParameters* params,
            size_t mostScratch,
            Sink& sink) const {
        detail::requireNoCapture(context.stream, "range_search");
        const detail::SearchFilter filter(context, params, index.ntotal, n);
        detail::LimitedRangeSink limited(sink, detail::maxResultsOf(params));
        detail::forQueryPages(
                context,
                "x",
                n,
                x,
                sizeof(float) * size_t(index.d),
                [&](idx_t first, idx_t count, const void* page) {
                    FlatKnnProblem problem = index.problemOf_(n, count, 1);
                    problem.mode = SearchMode::Certified;
                    problem.imageInOrder = true;
                    filter.apply(problem);
                    sink.setFirst(first);
                    if (const auto boxes = boxesFor(problem)) {
                        problem.queries = page;
                        detail::runBoxCall(
                                context,
                                *boxes,
                                problem,
                                radius,
                                mostScratch,
                                limited);
                        return;
                    }
                    detail::ImageUse image = detail::ImageUse::None;
                    const auto rounded = index.makeReady_(
                            context,
                            static_cast<const float*>(page),
                            problem,
                            &image);
                    detail::runRangeCall(
                            context, problem, radius, mostScratch, limited);
                });
        limited.requireEnough();
    }

    /// What a search of the problem goes through, if it pays.
    std::optional<RangeBoxes> boxesFor(const FlatKnnProblem& problem) const {
        // As makeReady_: vectors without our norms may have changed unseen.
        if (!problem.greatestNorm) {
            return std::nullopt;
        }
        index.facts_->awaitChanges(context, true);
        return index.facts_->giveBoxes(problem, context);
    }
};

void GpuIndexBitsFlat::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    detail::requireFlatRange(n, x, radius, params);
    detail::requireRangeResult(result, n);
    DeviceScope scope(config_.device);
    const GpuContext context = contextOf_(params);
    withFaissErrors([&] {
        detail::RangeResults results(n);
        detail::HostRangeSink sink(context, results);
        RangeSearch_{*this, context}.run(
                n, x, radius, params, detail::kHostRangeScratch, sink);
        results.moveTo(*result);
    });
}

void GpuIndexBitsFlat::rangeSearchOnDevice(
        idx_t n,
        const float* x,
        float radius,
        GpuRangeResult& result,
        const faiss::SearchParameters* params) const {
    detail::requireFlatRange(n, x, radius, params);
    DeviceScope scope(config_.device);
    const GpuContext context = contextOf_(params);
    withFaissErrors([&] {
        detail::DeviceRangeSink sink(result, n);
        RangeSearch_{*this, context}.run(n, x, radius, params, SIZE_MAX, sink);
        sink.finish();
    });
}

} // namespace faiss_bits::gpu
