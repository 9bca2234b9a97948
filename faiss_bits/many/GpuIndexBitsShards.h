#pragma once

#include <memory>
#include <vector>

#include "faiss_bits/many/GpuIndexBitsMany.h"

namespace faiss_bits::gpu {

namespace detail {
struct ShardSet;
} // namespace detail

/// An exact index over several GPUs: every vector is on one of them. In
/// certified mode it gives the bits of one GpuIndexBitsFlat, whatever the
/// number of shards. The parts are GpuIndexBitsFlat, or inverted lists that
/// index_cpu_to_gpu_multiple has dealt out.
///
/// Devices  any list, in which a device may come several times; up to 64 shards
/// Ids      in the order of the additions, as of one index, or those that are
///          given to inverted lists. An addition is cut into one piece a shard
///          (of leastPiece vectors at least), so that shards stay even
/// Metrics  those of GpuIndexBitsFlat; inverted lists: L2 and inner product
/// Result   as of GpuIndexBitsFlat: (canonical distance, id). In plain mode
///          every shard has the stated arithmetic of a search of its own, so
///          that distances may differ from one index's in their last bits where
///          the number of queries in a page or the shape decides the
///          arithmetic; ties still go to the lower id
/// Pointers x, distances and labels may each lie on the host or on the first
///          device of the list, in any mix. What lies on the host is ready when
///          the call is made: pinned or managed memory that work on a stream
///          still writes is not waited for
/// Stream   work on the first device is ordered on the stream of its first
///          resources. With pointers to the device alone a search of flat
///          shards enqueues and returns, unless memory comes from cudaMalloc,
///          n k >= 2^16, or n >= 512 and shards have 8,192 vectors each: then
///          shards are asked for little more than their share of the k results
///          at first, within a limit that a sample of all vectors says is far
///          enough, and the call waits to see whether that was so. Queries
///          where it was not are searched again. The first such search after
///          an addition of more than an eighth of the vectors makes the sample
///          (some ten milliseconds)
/// Pages    host arrays go through the first device as in GpuIndexBitsFlat, in
///          pages of up to 64 MiB (16 where there is less temporary memory than
///          512). Up to 4,096 results of all shards together, where each shard
///          has a device of its own: every device fetches the queries by
///          itself, and the host merges
/// Interrupts  as of GpuIndexBitsFlat (Pages)
/// Merge    each device has a slice of the queries: it gets the results that
///          the shards on others have for it, merges them, and sends its slice
///          to the first device. Copies go from device to device, or through
///          pinned memory where there is no peer access
/// Filters  SearchParameters::sel: any selector of the index's ids, read on the
///          host at each call (n / 8 bytes, and what the selector costs). Of
///          inverted lists, SearchParametersIVF too
/// Memory   up to 12 min(k, ntotal of a shard) bytes a query and shard, from
///          temporary memory of the shards' resources, in batches of queries;
///          the sample: up to 2^16 vectors in float32, and their search image,
///          on every device
/// Errors   FaissException, with the device's number where one of them fails.
///          The index then is what it was. A device that has gone cannot be
///          used again by the process (CUDA)
/// Threads  one call at a time. One thread of its own for each device but the
///          first; after a search it asks for the next one for half a
///          millisecond before it sleeps
/// Graphs   a stream that is being captured is refused
/// Source   Johnson et al. 2017, 5.4 (sharding); docs/design/many.md
class GpuIndexBitsShards : public GpuIndexBitsMany {
   public:
    /// An empty index for vectors of dims >= 1 dimensions: one shard for each
    /// entry of the list.
    GpuIndexBitsShards(
            const DeviceList& devices,
            int dims,
            faiss::MetricType metric,
            GpuIndexBitsManyConfig config = GpuIndexBitsManyConfig());

    /// Deals out the vectors of a CPU index (not null).
    GpuIndexBitsShards(
            const DeviceList& devices,
            const faiss::IndexFlat* index,
            GpuIndexBitsManyConfig config = GpuIndexBitsManyConfig());

    /// Of indexes on these devices, with ids of their own, that search as
    /// GpuIndexBitsIVFFlat does. Those of our own classes can be trained and
    /// filled, FAISS's own can not; no vectors can be reconstructed.
    GpuIndexBitsShards(
            const DeviceList& devices,
            std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> parts,
            GpuIndexBitsManyConfig config = GpuIndexBitsManyConfig());

    ~GpuIndexBitsShards() override;

    /// Vectors of shard 0 <= shard < count().
    idx_t shardSize(int shard) const;
    /// Device of that shard.
    int shardDevice(int shard) const;
    /// Results that a certified search of n queries on the device, without a
    /// filter, asks that shard for at first: k, or fewer (Stream, above).
    idx_t shardK(int shard, idx_t n, idx_t k) const;

    /// Vector `key`, 0 <= key < ntotal, to out [d] on the host.
    void reconstruct(idx_t key, float* out) const override;

    /// Vectors i0 to i0 + n - 1 to out [n, d] on the host.
    void reconstruct_n(idx_t i0, idx_t n, float* out) const override;

   private:
    detail::ShardSet& shards_() const;
    PartParameters_ parametersOf_(
            const faiss::SearchParameters* params) const override;
    void addVectors_(idx_t n, const float* x, const idx_t* ids, bool onHost)
            override;
    void wasReset_() override;
    void searchParts_(
            const detail::GpuContext& home,
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const PartParameters_& parameters,
            bool isFiltered) const override;
    void rangeSearchParts_(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const PartParameters_& parameters) const override;
};

} // namespace faiss_bits::gpu
