#pragma once

#include <cstdint>
#include <memory>

#include <faiss/Index.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/many/DeviceList.h"

namespace faiss_bits {

class IndexMetricSpace;

namespace gpu {

class GpuIndexBitsMetricSpace;
namespace detail {
struct MetricShardSet;
} // namespace detail

/// Who finds out which clusters a query of a range search has to look at. No
/// answer depends on it.
///
/// Source  Barrientos et al. 2012, VII, but for OneAndAHalf
enum class RangeStages : uint8_t {
    /// Each device, of its own clusters alone: nothing is exchanged, but a
    /// search ends only at a cluster of the same device that holds the query's
    /// ball.
    One,
    /// Each device, of all clusters, whose centers it has: the list ends where
    /// it does on one device, and nothing is exchanged. Every device computes
    /// the distances to all centers.
    OneAndAHalf,
    /// Each device for a slice of the queries, of all clusters. Then the
    /// devices tell each other, and each looks into its own clusters.
    Two,
};

/// An index for metric spaces over several GPUs: List of Clusters or SSS, whose
/// clusters (of SSS, neighbours in the order of the pivots) are dealt out to
/// them in turn. The answers are those of one GpuIndexBitsListOfClusters or
/// GpuIndexBitsSSS, bit for bit, whatever the devices and the stages.
///
/// Devices  any list, in which a device may come several times; up to 64
/// Making   on one device, or on the CPU: of an index that is there. It takes
///          no vectors itself
/// Metrics, results, values, filters  as of GpuIndexBitsMetricSpace
/// Pointers x, distances and labels may each lie on the host or on the first
///          device of the list, in any mix; x is copied to the host once where
///          it is not there
/// Stream   every search waits. No capture in a CUDA graph
/// Memory   4 d bytes a vector, each on one device, and all pivots on every
///          one; from the first search in more than one stage on, 4 d + 24
///          bytes a center on every device. Results of all parts on the host,
///          and again in the result
/// Errors   FaissException, with the device's number where one of them fails.
///          The index then is what it was
/// Threads  one call at a time. One thread of its own for each device but the
///          first
/// Source   Barrientos et al. 2012, VII
class GpuIndexBitsMetricSpaceShards : public faiss::Index {
   public:
    /// Of range_search. SSS has no end of a list to find: OneAndAHalf is One.
    RangeStages stages = RangeStages::One;

    /// Deals out an index on a GPU (not null), which is made first unless it
    /// is. It is not needed afterwards.
    ///
    /// config  usePeerAccess and joinSameDevice alone: float16 and bfloat16
    ///         are refused
    GpuIndexBitsMetricSpaceShards(
            const DeviceList& devices,
            const GpuIndexBitsMetricSpace* index,
            GpuIndexBitsManyConfig config = GpuIndexBitsManyConfig());

    /// The same of an index on the CPU.
    GpuIndexBitsMetricSpaceShards(
            const DeviceList& devices,
            const IndexMetricSpace* index,
            GpuIndexBitsManyConfig config = GpuIndexBitsManyConfig());

    ~GpuIndexBitsMetricSpaceShards() override;

    /// Number of shards.
    int count() const;
    /// The first device of the list, where arrays may lie.
    int getDevice() const;
    /// Vectors of shard 0 <= shard < count().
    idx_t shardSize(int shard) const;
    /// Device of that shard.
    int shardDevice(int shard) const;

    /// Throws FaissException: the vectors are dealt out by an index that is
    /// made.
    void add(idx_t n, const float* x) override;
    /// Likewise: make another one of an empty index.
    void reset() override;

    /// Finds all vectors with distance < radius, of every query by ascending
    /// id, as a result on the host. result->nq must be n. radius: not NaN; 0
    /// and less give nothing
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds the k nearest vectors of each of n queries: every device in its
    /// own clusters, then the host merges.
    ///
    /// x [n, d], distances [n, k], labels [n, k]; params null, or without a
    /// selector
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Distances that all devices have computed since the index was made, or
    /// since resetDistances(): those to centers and pivots included.
    uint64_t numDistances() const;
    /// numDistances() begins at zero again.
    void resetDistances();

   private:
    std::unique_ptr<detail::MetricShardSet> set_;
};

} // namespace gpu
} // namespace faiss_bits
