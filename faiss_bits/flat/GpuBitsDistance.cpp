#include "faiss_bits/flat/GpuBitsDistance.h"

#include <limits>
#include <optional>
#include <vector>

#include <faiss/gpu/GpuResources.h>
#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/flat/DistanceArguments.h"
#include "faiss_bits/flat/SearchReport.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/FlatKnnPlan.h"

namespace faiss_bits::gpu {

using detail::allocTemporary;
using detail::requireNotNull;
using detail::withFaissErrors;
using faiss::gpu::GpuDistanceParams;
using faiss::gpu::IndicesDataType;

namespace {

IdType idTypeOf(IndicesDataType type) {
    FAISS_THROW_IF_NOT_FMT(
            type == IndicesDataType::I32 || type == IndicesDataType::I64,
            "outIndicesType = %d is not supported",
            int(type));
    return type == IndicesDataType::I32 ? IdType::Int32 : IdType::Int64;
}

/// Everything that can be said without looking at the memory.
FlatKnnProblem problemOf(const GpuDistanceParams& args, Metric metric) {
    FAISS_THROW_IF_NOT_FMT(
            args.k == -1 || args.k >= 1,
            "k = %d is neither -1 (all distances) nor 1 or more",
            args.k);
    FlatKnnProblem problem = detail::shapeOf(args, metric);
    problem.k = args.k;
    if (args.k != -1) {
        problem.idType = idTypeOf(args.outIndicesType);
    }
    if (args.numQueries == 0) {
        return problem;
    }
    requireNotNull(args.queries, "queries");
    if (args.numVectors > 0) {
        requireNotNull(args.vectors, "vectors");
    }
    if (args.k == -1) {
        requireNotNull(args.outDistances, "outDistances");
    } else {
        if (!args.ignoreOutDistances) {
            requireNotNull(args.outDistances, "outDistances");
        }
        requireNotNull(args.outIndices, "outIndices");
    }
    return problem;
}

void runAllPage(
        const detail::GpuContext& context,
        const FlatKnnProblem& problem) {
    const size_t bytes = allDistancesWorkspaceBytes(problem);
    auto scratch = allocTemporary(context, bytes);
    runAllDistances(
            problem,
            {scratch.get(), bytes},
            context.resources->getBlasHandle(context.device),
            context.stream);
}

/// `pages` is given for the first page alone, whose plan goes to the log.
void runKnnPage(
        const detail::GpuContext& context,
        const FlatKnnProblem& problem,
        const detail::PagePlan* pages) {
    const FlatKnnPlan plan =
            planFlatKnn(problem, detail::scratchBudget(context));
    if (pages) {
        detail::logSearch(
                "bfKnnBits",
                plan,
                problem,
                *pages,
                problem.batchQueries,
                detail::ImageUse::None,
                context.device);
    }
    auto scratch = allocTemporary(context, plan.bytes);
    runFlatKnn(
            plan,
            problem,
            {scratch.get(), plan.bytes},
            context.resources->getBlasHandle(context.device),
            context.stream);
}

void runPages(
        const detail::GpuContext& context,
        const GpuDistanceParams& args,
        FlatKnnProblem problem) {
    const bool all = problem.k == -1;
    const idx_t numQueries = args.numQueries;
    const idx_t perQuery = all ? problem.numVectors : problem.k;

    const detail::VectorsOnDevice vectors(context, args, problem);
    std::vector<cudaStream_t> reading;
    if (vectors.readsOn()) {
        reading.push_back(context.stream);
    }
    // Also at the end: host vectors may be used again when the call returns.
    const detail::ScopedWait waitForVectors(reading);

    detail::PagedCall call(context);
    const size_t size = sizeOf(problem.dataType);
    const int queries = problem.queriesRowMajor
            ? call.input("queries", args.queries, size * problem.d)
            : call.columns("queries", args.queries, problem.d, size);
    const int distances = call.output(
            "outDistances",
            args.outDistances,
            sizeof(float) * perQuery,
            !all && args.ignoreOutDistances);
    const int ids = all ? -1
                        : call.output(
                                  "outIndices",
                                  args.outIndices,
                                  sizeOf(problem.idType) * perQuery);

    detail::PageLimits limits;
    limits.rows = numQueries;
    limits.workPerRow =
            detail::searchWork(problem.numVectors, problem.d, int(perQuery));
    problem.batchQueries = numQueries;
    problem.device = deviceTraits(context.device);
    call.run(limits, [&](const detail::Page& page) {
        problem.numQueries = page.rows;
        problem.queries = page.as<const void>(queries);
        problem.outDistances = page.as<float>(distances);
        problem.outIds = all ? nullptr : page.as<void>(ids);
        all ? runAllPage(context, problem)
            : runKnnPage(
                      context,
                      problem,
                      page.first == 0 ? &call.plan() : nullptr);
    });
}

} // namespace

void bfKnnBits(
        faiss::gpu::GpuResourcesProvider* provider,
        const GpuDistanceParams& args,
        SearchMode mode) {
    bfKnnBits(provider, args, detail::requireMetric(args.metric), mode);
}

void bfKnnBits(
        faiss::gpu::GpuResourcesProvider* provider,
        const GpuDistanceParams& args,
        Metric metric,
        SearchMode mode) {
    FAISS_THROW_IF_NOT_FMT(
            metric <= Metric::Jaccard, "metric = %d is unknown", int(metric));
    FAISS_THROW_IF_NOT_FMT(
            mode <= SearchMode::Fast, "mode = %d is unknown", int(mode));
    FlatKnnProblem problem = problemOf(args, metric);
    problem.mode = mode;
    if (args.numQueries == 0 || (args.k == -1 && args.numVectors == 0)) {
        return;
    }
    withFaissErrors([&] {
        const detail::OwnedContext owned(provider, requestedDevice(args));
        faiss::gpu::DeviceScope scope(owned.context.device);
        runPages(owned.context, args, problem);
    });
}

} // namespace faiss_bits::gpu
