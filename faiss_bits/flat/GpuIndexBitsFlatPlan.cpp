// What a search of GpuIndexBitsFlat is before it runs: its problem, and the
// plan of it.

#include <faiss/gpu/utils/DeviceUtils.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/flat/FlatChecks.h"
#include "faiss_bits/flat/FlatStorage.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/flat/SearchFilter.h"
#include "faiss_bits/flat/SearchReport.h"
#include "faiss_bits/flat/VectorFacts.h"

namespace faiss_bits::gpu {

using detail::FlatView;
using detail::GpuContext;
using detail::PageLimits;
using detail::withFaissErrors;
using faiss::gpu::DeviceScope;

GpuContext GpuIndexBitsFlat::contextOf_(
        const faiss::SearchParameters* params) const {
    faiss::gpu::GpuResources& resources =
            *detail::resourcesOf(params, resources_);
    if (&resources != resources_.get()) {
        resources.initializeForDevice(config_.device);
    }
    return detail::contextOf(resources, config_.device);
}

PageLimits GpuIndexBitsFlat::pageLimits_(
        const GpuContext& context,
        idx_t n,
        int k) const {
    PageLimits limits;
    limits.mostStaging = detail::stagingOfSearch(
            n,
            sizeof(float) * d + (sizeof(float) + sizeof(idx_t)) * k,
            context.resources->getTempMemoryAvailable(context.device));
    limits.rows = n;
    limits.workPerRow = detail::searchWork(ntotal, d, k);
    limits.pageBytes = minPagedSize_;
    if (storageType_() != DataType::Float32) {
        limits.scratchBytesPerRow = sizeOf(storageType_()) * d;
    }
    return limits;
}

FlatKnnProblem GpuIndexBitsFlat::problemOf_(idx_t batch, idx_t n, int k) const {
    const FlatView view = detail::viewOf(*data_, storageType_());
    FlatKnnProblem problem;
    problem.metric = detail::requireMetric(metric_type);
    problem.metricArg =
            detail::requireMetricArg(problem.metric, "metric_arg", metric_arg);
    problem.dataType = view.dataType;
    problem.numVectors = view.n;
    problem.numQueries = n;
    problem.batchQueries = batch;
    problem.d = d;
    problem.k = k;
    problem.vectors = view.vectors;
    problem.vectorNorms = view.norms;
    problem.greatestNorm = view.greatestNorm;
    problem.mode = search_mode;
    problem.idType = IdType::Int64;
    problem.device = deviceTraits(config_.device);
    return problem;
}

GpuSearchPlan GpuIndexBitsFlat::plan(
        idx_t n,
        idx_t k,
        const faiss::SearchParameters* params,
        bool hostArrays) const {
    detail::requireFlatSearch(n, k, params);
    if (n == 0) {
        return {};
    }
    DeviceScope scope(config_.device);
    const GpuContext context = contextOf_(params);
    return withFaissErrors([&] {
        detail::ExpectedSearch search;
        search.problem = problemOf_(n, n, int(k));
        search.limits = pageLimits_(context, n, int(k));
        search.filter =
                detail::filterShapeOf(params, ntotal, n, config_.device);
        // As a search does where the norms are not ours.
        search.facts = search.problem.greatestNorm ? facts_.get() : nullptr;
        search.hostArrays = hostArrays;
        return detail::planSearch(context, search, deviceSpeed(config_.device));
    });
}

} // namespace faiss_bits::gpu
