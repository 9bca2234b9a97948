#include "faiss_bits/range/GpuBitsRange.h"

#include <faiss/gpu/GpuResources.h>
#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/flat/DistanceArguments.h"
#include "faiss_bits/range/RangeCall.h"
#include "faiss_bits/range/RangeResults.h"

namespace faiss_bits::gpu {

using faiss::gpu::GpuDistanceParams;

namespace {

FlatKnnProblem problemOf(
        const GpuDistanceParams& args,
        Metric metric,
        float radius,
        idx_t maxResults) {
    FAISS_THROW_IF_NOT_FMT(
            metric <= Metric::Jaccard, "metric = %d is unknown", int(metric));
    FlatKnnProblem problem = detail::shapeOf(args, metric);
    detail::requireRange(radius, maxResults);
    FAISS_THROW_IF_NOT_MSG(
            args.queriesRowMajor,
            "queriesRowMajor = false: a range search takes queries by row");
    if (args.numQueries > 0) {
        detail::requireNotNull(args.queries, "queries");
        if (args.numVectors > 0) {
            detail::requireNotNull(args.vectors, "vectors");
        }
    }
    problem.k = 1;
    problem.mode = SearchMode::Certified;
    problem.batchQueries = args.numQueries;
    return problem;
}

template <class Sink>
void searchPages(
        const detail::GpuContext& context,
        const GpuDistanceParams& args,
        FlatKnnProblem problem,
        float radius,
        idx_t maxResults,
        size_t mostScratch,
        Sink& sink) {
    detail::requireNoCapture(context.stream, "range_search");
    problem.device = deviceTraits(context.device);
    GpuDistanceParams withoutNorms = args;
    withoutNorms.vectorNorms = nullptr;
    const detail::VectorsOnDevice vectors(context, withoutNorms, problem);
    // Host vectors may be used again when the call returns.
    const detail::ScopedWait wait({context.stream});
    detail::LimitedRangeSink limited(sink, maxResults);
    detail::forQueryPages(
            context,
            "queries",
            args.numQueries,
            args.queries,
            sizeOf(problem.dataType) * size_t(problem.d),
            [&](idx_t first, idx_t count, const void* page) {
                problem.numQueries = count;
                problem.queries = page;
                sink.setFirst(first);
                detail::runRangeCall(
                        context, problem, radius, mostScratch, limited);
            });
    limited.requireEnough();
}

} // namespace

void bfRangeBits(
        faiss::gpu::GpuResourcesProvider* provider,
        const GpuDistanceParams& args,
        Metric metric,
        float radius,
        faiss::RangeSearchResult* result,
        idx_t maxResults) {
    const FlatKnnProblem problem = problemOf(args, metric, radius, maxResults);
    detail::requireRangeResult(result, args.numQueries);
    detail::withFaissErrors([&] {
        const detail::OwnedContext owned(provider, requestedDevice(args));
        faiss::gpu::DeviceScope scope(owned.context.device);
        detail::RangeResults results(args.numQueries);
        detail::HostRangeSink sink(owned.context, results);
        searchPages(
                owned.context,
                args,
                problem,
                radius,
                maxResults,
                detail::kHostRangeScratch,
                sink);
        results.moveTo(*result);
    });
}

void bfRangeBitsOnDevice(
        faiss::gpu::GpuResourcesProvider* provider,
        const GpuDistanceParams& args,
        Metric metric,
        float radius,
        GpuRangeResult& result,
        idx_t maxResults) {
    const FlatKnnProblem problem = problemOf(args, metric, radius, maxResults);
    detail::withFaissErrors([&] {
        const detail::OwnedContext owned(provider, requestedDevice(args));
        faiss::gpu::DeviceScope scope(owned.context.device);
        detail::DeviceRangeSink sink(result, args.numQueries);
        searchPages(
                owned.context,
                args,
                problem,
                radius,
                maxResults,
                SIZE_MAX,
                sink);
        sink.finish();
    });
}

} // namespace faiss_bits::gpu
