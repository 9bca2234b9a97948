#pragma once

#include <memory>
#include <vector>

#include "faiss_bits/many/DeviceCopies.h"
#include "faiss_bits/many/GpuIndexBitsMetricSpaceShards.h"
#include "faiss_bits/many/ManyDevices.h"
#include "faiss_bits/metric_space/FoundRanges.h"
#include "faiss_bits/metric_space/MetricContents.h"
#include "kernels/metric_space/GroupsMemory.h"

/// The inside of GpuIndexBitsMetricSpaceShards. Not part of the API.
namespace faiss_bits::gpu::detail {

/// What is on one device.
struct MetricShard {
    metric_space::GroupsMemory groups; ///< its own; ids are those of the whole
    idx_t size = 0;
    uint64_t distances = 0; ///< computed

    // For searches in more than one stage:
    metric_space::GroupsMemory bounds; ///< of all groups
    /// [centers] their ids where they are ours, else -1.
    std::shared_ptr<void> ownCenters;
};

struct MetricShardSet {
    /// Deals out what is made.
    MetricShardSet(
            const DeviceList& list,
            const GpuIndexBitsManyConfig& config,
            const faiss_bits::detail::MetricContents& whole);

    /// x [n, d] on the host.
    void range(
            RangeStages stages,
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result) const;

    /// x [n, d], distances and ids [n, k], all on the host.
    void nearest(idx_t n, const float* x, idx_t k, float* distances, idx_t* ids)
            const;

    ManyDevices devices;
    std::unique_ptr<DeviceCopies> copies;
    int d;
    faiss_bits::detail::MetricIndexKind kind;
    mutable std::vector<MetricShard> shards;

   private:
    /// bounds and ownCenters of every shard, unless they are there.
    void makeBounds_() const;
};

} // namespace faiss_bits::gpu::detail
