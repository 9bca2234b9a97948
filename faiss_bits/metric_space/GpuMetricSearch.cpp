// The searches of GpuIndexBitsMetricSpace.

#include <algorithm>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/metric_space/GpuMetricState.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/common/DeviceTraits.h"
#include "kernels/metric_space/MetricSearch.h"

namespace faiss_bits::gpu {

using detail::DeviceArray;
using detail::GpuContext;
using detail::requireNotNull;
using detail::withFaissErrors;
using faiss::gpu::DeviceScope;
using namespace metric_space;

namespace {

/// Queries that are copied to the device at a time, and their neighbours.
constexpr size_t kQueryBytes = size_t(64) << 20;
constexpr size_t kResultBytes = size_t(256) << 20;
constexpr size_t kMostScratch = size_t(1) << 30;

void requireNoCapture(const GpuContext& context) {
    FAISS_THROW_IF_NOT_MSG(
            !detail::isCaptured(context.stream),
            "a search in a metric space waits for the device, which a capture "
            "of its stream forbids");
}

/// Calls body(first, count) for pages of the n queries.
template <class Body>
void forPages(
        idx_t n,
        size_t queryBytes,
        size_t resultBytes,
        const Body& body) {
    const idx_t most = std::clamp<idx_t>(
            idx_t(std::min(
                    kQueryBytes / queryBytes,
                    kResultBytes / std::max<size_t>(resultBytes, 1))),
            1,
            n);
    for (idx_t first = 0; first < n; first += most) {
        detail::throwIfInterrupted();
        body(first, std::min(most, n - first));
    }
}

/// A search of some queries on the device, with its scratch.
struct Run {
    MetricSearchProblem problem;
    MetricSearchPlan plan;
    faiss::gpu::GpuMemoryReservation scratch;

    Run(const GpuContext& context,
        const MetricGroups& groups,
        bool isQueryMajor,
        idx_t k,
        idx_t n,
        const float* queries) {
        problem.groups = groups;
        problem.numQueries = n;
        problem.queries = queries;
        problem.mapping =
                isQueryMajor ? Mapping::QueryMajor : Mapping::GroupMajor;
        problem.multiprocessors = deviceTraits(context.device).multiprocessors;
        plan = planMetricSearch(
                problem,
                k,
                std::min(detail::scratchBudget(context), kMostScratch));
        scratch = detail::allocTemporary(context, plan.bytes);
    }

    Workspace workspace() {
        return {scratch.get(), plan.bytes};
    }
};

/// Results on the host, part by part.
class HostRanges {
   public:
    explicit HostRanges(const GpuContext& context) : context_(context) {}

    void add(const MetricRangePart& part) {
        std::vector<idx_t> limits(part.rows + 1);
        copy(limits.data(), part.limits, limits.size() * sizeof(idx_t));
        const size_t before = ids_.size();
        const size_t total = size_t(part.total);
        distances_.resize(before + total);
        ids_.resize(before + total);
        copy(distances_.data() + before, part.distances, total * sizeof(float));
        copy(ids_.data() + before, part.ids, total * sizeof(idx_t));
        detail::waitFor(context_.stream);
        for (idx_t i = 0; i < part.rows; ++i) {
            counts_.push_back(size_t(limits[i + 1] - limits[i]));
        }
        detail::throwIfInterrupted();
    }

    void moveTo(faiss::RangeSearchResult& result) const {
        std::copy(counts_.begin(), counts_.end(), result.lims);
        result.do_allocation(); // makes limits of the counts
        std::copy(distances_.begin(), distances_.end(), result.distances);
        std::copy(ids_.begin(), ids_.end(), result.labels);
    }

   private:
    void copy(void* to, const void* from, size_t bytes) const {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                to, from, bytes, cudaMemcpyDeviceToHost, context_.stream));
    }

    const GpuContext& context_;
    std::vector<size_t> counts_;
    std::vector<float> distances_;
    std::vector<idx_t> ids_;
};

} // namespace

void GpuIndexBitsMetricSpace::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    faiss_bits::detail::requireRangeArguments(n, x, radius, result);
    faiss_bits::detail::requireNoFilter(params);
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        requireNoCapture(context);
        HostRanges ranges(context);
        if (n > 0) {
            build_();
            const size_t row = size_t(d) * sizeof(float);
            forPages(n, row, 0, [&](idx_t first, idx_t count) {
                const DeviceArray queries(
                        context, "x", x + first * d, size_t(count) * row);
                Run run(context,
                        state_->groups.groups(),
                        query_major,
                        0,
                        count,
                        static_cast<const float*>(queries.data()));
                MetricCounters counters;
                runMetricRange(
                        run.plan,
                        run.problem,
                        radius,
                        run.workspace(),
                        context.stream,
                        [&](const MetricRangePart& part) { ranges.add(part); },
                        &counters);
                state_->distances += counters.distances;
            });
        }
        ranges.moveTo(*result);
    });
}

void GpuIndexBitsMetricSpace::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    faiss_bits::detail::requireCount(n, "n");
    FAISS_THROW_IF_NOT_FMT(
            k >= 1, "k = %lld, at least 1 is needed", (long long)k);
    faiss_bits::detail::requireNoFilter(params);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(distances, "distances");
    requireNotNull(labels, "labels");
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        requireNoCapture(context);
        detail::placeOf(context, "distances", distances);
        detail::placeOf(context, "labels", labels);
        build_();
        const size_t row = size_t(d) * sizeof(float);
        const size_t places = size_t(k) * (sizeof(float) + sizeof(idx_t));
        forPages(n, row, places, [&](idx_t first, idx_t count) {
            const DeviceArray queries(
                    context, "x", x + first * d, size_t(count) * row);
            const size_t all = size_t(count) * size_t(k);
            auto outIds = detail::allocTemporary(context, all * sizeof(idx_t));
            auto outDistances =
                    detail::allocTemporary(context, all * sizeof(float));
            {
                Run run(context,
                        state_->groups.groups(),
                        false,
                        k,
                        count,
                        static_cast<const float*>(queries.data()));
                MetricCounters counters;
                runMetricKnn(
                        run.plan,
                        run.problem,
                        k,
                        static_cast<float*>(outDistances.get()),
                        static_cast<idx_t*>(outIds.get()),
                        run.workspace(),
                        context.stream,
                        detail::throwIfInterrupted,
                        &counters);
                state_->distances += counters.distances;
            }
            detail::copyOut(
                    context,
                    outDistances.get(),
                    "distances",
                    distances + first * k,
                    all * sizeof(float));
            detail::copyOut(
                    context,
                    outIds.get(),
                    "labels",
                    labels + first * k,
                    all * sizeof(idx_t));
        });
        detail::waitFor(context.stream); // for queries that are on the host
    });
}

void GpuIndexBitsMetricSpace::searchImpl_(
        ImplSize n,
        const float* x,
        int k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    search(n, x, k, distances, labels, params);
}

void GpuIndexBitsMetricSpace::assign(
        idx_t n,
        const float* x,
        idx_t* labels,
        idx_t k) const {
    faiss_bits::detail::requireCount(n, "n");
    FAISS_THROW_IF_NOT_FMT(
            k >= 1, "k = %lld, at least 1 is needed", (long long)k);
    if (n == 0) {
        return;
    }
    std::vector<float> distances(size_t(n) * size_t(k));
    search(n, x, k, distances.data(), labels);
}

void GpuIndexBitsMetricSpace::search_and_reconstruct(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        float* recons,
        const faiss::SearchParameters* params) const {
    search(n, x, k, distances, labels, params);
    if (n > 0) {
        requireNotNull(recons, "recons");
        reconstruct_batch(n * k, labels, recons);
    }
}

} // namespace faiss_bits::gpu
