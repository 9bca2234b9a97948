#pragma once

#include <functional>
#include <string>

#include <faiss/MetricType.h>
#include <faiss/gpu/GpuResources.h>

#include "faiss_bits/range/GpuRangeResult.h"

namespace faiss_bits::bench {

/// Of the indexes that have any.
struct RangeIndexSettings {
    /// Of list_of_clusters; 0: 64, or as many as make 5,000 clusters.
    int bucketSize = 0;
    int nlist = 1024; ///< of ivf_flat
    int nprobe = 32;
};

/// What a bench of range searches has on the device.
struct RangeVectors {
    faiss::MetricType metric;
    int64_t n;
    int d;
    const float* vectors; ///< [n, d]
    const float* queries; ///< [rows, d], kMadeByQueries or more
    float radius;         ///< for the search that makes what `flat` keeps
};

/// Queries by which what an index makes at its first search is there.
constexpr int64_t kMadeByQueries = 1024;

/// An index in the race.
struct RangeIndex {
    std::string name;
    std::string settings;
    double buildMs = 0; ///< 0: nothing is built
    /// The first q queries, everything within the radius.
    std::function<void(int64_t q, float radius, gpu::GpuRangeResult&)> search;
};

/// Makes flat, brute_force, ivf_flat, list_of_clusters or sss; throws for
/// another name.
RangeIndex makeRangeIndex(
        const std::string& name,
        const RangeVectors& data,
        const RangeIndexSettings& settings,
        faiss::gpu::GpuResourcesProvider& resources);

} // namespace faiss_bits::bench
