#pragma once

#include <algorithm>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/metric_space/FoundRanges.h"
#include "faiss_bits/range/GpuRangeResult.h"
#include "kernels/metric_space/MetricSearch.h"

/// What searches in metric spaces on one GPU and on several share. Not part of
/// the API.
namespace faiss_bits::gpu::detail {

/// Queries that are copied to the device at a time, and their neighbours.
constexpr size_t kMetricQueryBytes = size_t(64) << 20;
constexpr size_t kMetricResultBytes = size_t(256) << 20;

/// Throws FaissException while the stream is captured into a CUDA graph.
void requireNoMetricCapture(const GpuContext& context);

/// Calls body(first, count) for pages of the n queries, which and whose results
/// take so many bytes each.
template <class Body>
void forMetricPages(
        idx_t n,
        size_t queryBytes,
        size_t resultBytes,
        const Body& body) {
    const idx_t most = std::clamp<idx_t>(
            idx_t(std::min(
                    kMetricQueryBytes / queryBytes,
                    kMetricResultBytes / std::max<size_t>(resultBytes, 1))),
            1,
            n);
    for (idx_t first = 0; first < n; first += most) {
        throwIfInterrupted();
        body(first, std::min(most, n - first));
    }
}

/// How many results of a range search are taken.
class MetricRangeLimit {
   public:
    /// most: 0 is no limit.
    explicit MetricRangeLimit(idx_t most = 0) : most_(most) {}

    /// Counts so many more; whether all of them until now are within the limit.
    bool takes(idx_t more) {
        total_ += more;
        return !isOver_();
    }

    /// After the last part: throws FaissException with the total where that is
    /// more.
    void requireEnough() const;

   private:
    bool isOver_() const {
        return most_ > 0 && total_ > most_;
    }

    idx_t most_;
    idx_t total_ = 0;
};

/// A search of some queries on the device.
class MetricRun {
   public:
    /// queries  [n, d] on the device
    /// vectors  by their ids, likewise; or nullptr
    MetricRun(
            const GpuContext& context,
            const metric_space::MetricGroups& groups,
            idx_t n,
            const float* queries,
            metric_space::Mapping mapping = metric_space::Mapping::GroupMajor,
            const float* vectors = nullptr);

    // Each returns the number of distances that it computed.

    /// Appends what is within the radius.
    uint64_t range(float radius, FoundRanges& found);
    /// The same, up to a limit.
    uint64_t range(float radius, FoundRanges& found, MetricRangeLimit& limit);
    /// The same to the device: parts, and to lims[first + i + 1] the number of
    /// results of query i.
    uint64_t range(
            float radius,
            idx_t first,
            GpuRangeResult& result,
            MetricRangeLimit& limit);
    /// The first of two stages, to groupBits on the device; appends centers.
    uint64_t firstStage(
            float radius,
            uint32_t* groupBits,
            uint32_t stride,
            FoundRanges& found);
    /// The second one, of groupBits.
    uint64_t secondStage(
            float radius,
            const uint32_t* groupBits,
            uint32_t stride,
            FoundRanges& found);
    /// To distances and ids [n, k] on the device.
    uint64_t nearest(idx_t k, float* distances, idx_t* ids);

   private:
    using Take = std::function<void(const metric_space::MetricRangePart&)>;

    size_t budget_() const;
    uint64_t range_(
            float radius,
            const Take& take,
            const metric_space::MetricRoom& room = nullptr);

    const GpuContext& context_;
    metric_space::MetricSearchProblem problem_;
};

} // namespace faiss_bits::gpu::detail
