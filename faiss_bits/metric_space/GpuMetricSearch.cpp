// The searches of GpuIndexBitsMetricSpace.

#include <numeric>
#include <typeinfo>

#include <faiss/gpu/utils/DeviceUtils.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/RangeArguments.h"
#include "faiss_bits/flat/SearchParametersBitsFlat.h"
#include "faiss_bits/metric_space/GpuMetricRun.h"
#include "faiss_bits/metric_space/GpuMetricState.h"
#include "faiss_bits/range/RangeCall.h"

namespace faiss_bits::gpu {

using detail::DeviceArray;
using detail::forMetricPages;
using detail::FoundRanges;
using detail::GpuContext;
using detail::MetricRangeLimit;
using detail::MetricRun;
using detail::requireNoMetricCapture;
using detail::requireNotNull;
using detail::withFaissErrors;
using faiss::gpu::DeviceScope;
using namespace metric_space;

namespace {

/// The limit that the parameters of a range search ask for. Throws
/// FaissException for what else they ask for.
MetricRangeLimit limitOf(const faiss::SearchParameters* params) {
    const auto* ours = dynamic_cast<const SearchParametersBitsFlat*>(params);
    if (!ours || typeid(*ours) != typeid(SearchParametersBitsFlat)) {
        faiss_bits::detail::requireNoFilter(params);
        return MetricRangeLimit();
    }
    const faiss::SearchParameters plain(*ours);
    faiss_bits::detail::requireNoFilter(&plain);
    FAISS_THROW_IF_NOT_MSG(
            !ours->resources,
            "params->resources is set, but indexes for metric spaces are "
            "searched on their own");
    return MetricRangeLimit(ours->max_results);
}

} // namespace

template <class Range>
void GpuIndexBitsMetricSpace::rangePages_(
        const GpuContext& context,
        idx_t n,
        const float* x,
        const Range& range) const {
    requireNoMetricCapture(context);
    if (n == 0) {
        return;
    }
    build_();
    const size_t row = size_t(d) * sizeof(float);
    forMetricPages(n, row, 0, [&](idx_t first, idx_t count) {
        const DeviceArray queries(
                context, "x", x + first * d, size_t(count) * row);
        MetricRun run(
                context,
                state_->groups.groups(),
                count,
                static_cast<const float*>(queries.data()),
                query_major ? Mapping::QueryMajor : Mapping::GroupMajor,
                state_->data());
        state_->distances += range(run, first);
    });
}

void GpuIndexBitsMetricSpace::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    faiss_bits::detail::requireRange(n, x, radius, result);
    detail::requireRange(radius, detail::maxResultsOf(params));
    MetricRangeLimit limit = limitOf(params);
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        FoundRanges ranges;
        rangePages_(context, n, x, [&](MetricRun& run, idx_t) {
            return run.range(radius, ranges, limit);
        });
        limit.requireEnough();
        ranges.copyTo(*result);
    });
}

void GpuIndexBitsMetricSpace::rangeSearchOnDevice(
        idx_t n,
        const float* x,
        float radius,
        GpuRangeResult& result,
        const faiss::SearchParameters* params) const {
    faiss_bits::detail::requireCount(n, "n");
    detail::requireRange(radius, detail::maxResultsOf(params));
    if (n > 0) {
        requireNotNull(x, "x");
    }
    MetricRangeLimit limit = limitOf(params);
    DeviceScope scope(config_.device);
    const GpuContext context = detail::contextOf(*resources_, config_.device);
    withFaissErrors([&] {
        result.lims.assign(size_t(n) + 1, 0);
        result.parts.clear();
        rangePages_(context, n, x, [&](MetricRun& run, idx_t first) {
            return run.range(radius, first, result, limit);
        });
        limit.requireEnough();
        std::partial_sum(
                result.lims.begin(), result.lims.end(), result.lims.begin());
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
    detail::requirePositive(k, "k");
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
        requireNoMetricCapture(context);
        detail::placeOf(context, "distances", distances);
        detail::placeOf(context, "labels", labels);
        build_();
        const size_t row = size_t(d) * sizeof(float);
        const size_t places = size_t(k) * (sizeof(float) + sizeof(idx_t));
        forMetricPages(n, row, places, [&](idx_t first, idx_t count) {
            const DeviceArray queries(
                    context, "x", x + first * d, size_t(count) * row);
            const size_t all = size_t(count) * size_t(k);
            auto outIds = detail::allocTemporary(context, all * sizeof(idx_t));
            auto outDistances =
                    detail::allocTemporary(context, all * sizeof(float));
            {
                MetricRun run(
                        context,
                        state_->groups.groups(),
                        count,
                        static_cast<const float*>(queries.data()));
                state_->distances += run.nearest(
                        k,
                        static_cast<float*>(outDistances.get()),
                        static_cast<idx_t*>(outIds.get()));
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
    detail::requirePositive(k, "k");
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
    if (n > 0) {
        requireNotNull(recons, "recons");
    }
    search(n, x, k, distances, labels, params);
    reconstruct_batch(n * k, labels, recons);
}

} // namespace faiss_bits::gpu
