#pragma once

#include <memory>
#include <vector>

#include <faiss/Index.h>
#include <faiss/IndexFlat.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/many/DeviceList.h"
#include "kernels/common/SearchMode.h"

namespace faiss::gpu {
class GpuIndex;
}

namespace faiss_bits::gpu {

namespace detail {
class PartFilters;
struct GpuContext;
struct ShardSet;
} // namespace detail

/// An exact index over several GPUs: every vector is on one of them. In
/// certified mode it gives the bits of one GpuIndexBitsFlat, whatever the
/// number of shards. The parts are GpuIndexBitsFlat, or inverted lists that
/// index_cpu_to_gpu_multiple has dealt out.
///
/// Devices  any list, in which a device may come several times; up to 64 shards
/// Ids      in the order of the additions, as of one index. An addition is cut
///          into one piece a shard, so that shards stay even
/// Metrics  those of GpuIndexBitsFlat; inverted lists: L2 and inner product
/// Result   as of GpuIndexBitsFlat: (canonical distance, id). In plain mode
///          every shard has the stated arithmetic of a search of its own, so
///          that distances may differ from one index's in their last bits where
///          the number of queries in a page or the shape decides the
///          arithmetic; ties still go to the lower id
/// Pointers x, distances and labels may each lie on the host or on the first
///          device of the list, in any mix
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
/// Pages    host arrays go through the first device as in GpuIndexBitsFlat.
///          Interrupts: as there
/// Merge    each device has a slice of the queries: it gets the results that
///          the shards on others have for it, merges them, and sends its slice
///          to the first device. Copies go from device to device, or through
///          pinned memory where there is no peer access
/// Filters  SearchParameters::sel: any selector of the index's ids, read on the
///          host at each call (n / 8 bytes, and what the selector costs). Of
///          inverted lists, SearchParametersIVF too
/// Memory   up to 12 min(k, ntotal of a shard) bytes a query and shard, from
///          temporary memory of the shards' resources, in batches of queries;
///          the sample, up to 2^16 vectors in float32 on every device
/// Errors   FaissException, with the device's number where one of them fails.
///          The index then is what it was. A device that has gone cannot be
///          used again by the process (CUDA)
/// Threads  one call at a time. One thread of its own for each device but the
///          first
/// Graphs   a stream that is being captured is refused
/// Source   Johnson et al. 2017, 5.4 (sharding); docs/design.md
class GpuIndexBitsShards : public faiss::Index {
   public:
    /// Of flat shards, as of GpuIndexBitsFlat; inverted lists are always
    /// certified.
    SearchMode search_mode = SearchMode::Certified;

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

    /// Of indexes on these devices, with ids of their own, each id once, that
    /// search as GpuIndexBitsIVFFlat does. No vectors can be added or
    /// reconstructed.
    GpuIndexBitsShards(
            const DeviceList& devices,
            std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> parts,
            GpuIndexBitsManyConfig config = GpuIndexBitsManyConfig());

    ~GpuIndexBitsShards() override;

    /// Number of shards.
    int count() const;
    /// The first device of the list, where arrays may lie.
    int getDevice() const;
    /// The first resources of the list, whose stream orders the calls.
    std::shared_ptr<faiss::gpu::GpuResources> getResources() const;
    /// Vectors of shard 0 <= shard < count().
    idx_t shardSize(int shard) const;
    /// Device of that shard.
    int shardDevice(int shard) const;
    /// Results that a certified search of n queries on the device, without a
    /// filter, asks that shard for at first: k, or fewer (Stream, above).
    idx_t shardK(int shard, idx_t n, idx_t k) const;
    /// Shard 0 <= shard < count(); it stays ours.
    const faiss::Index* at(int shard) const;

    /// Adds n vectors x [n, d]. All or none, whichever device fails.
    void add(idx_t n, const float* x) override;

    /// As add; ids must be null.
    void add_with_ids(idx_t n, const float* x, const idx_t* ids) override;

    /// Nothing: flat indexes need none, and inverted lists are trained before
    /// they are dealt out.
    void train(idx_t n, const float* x) override;

    /// Removes all vectors.
    void reset() override;

    /// Finds the k nearest vectors of each of n queries, of all shards.
    ///
    /// x [n, d], distances [n, k], labels [n, k]; params as above
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// search() without the distances; labels is [n, k].
    void assign(idx_t n, const float* x, idx_t* labels, idx_t k = 1)
            const override;

    /// Finds all vectors with distance < radius (similarities > radius) for
    /// each of n queries, by range_search of the shards, at the same time.
    ///
    /// x [n, d] on the host or on the first device; result->nq must be n. Of
    /// every query in ascending order of ids; of inverted lists shard by shard
    ///
    /// Cost  as of the shards, and a copy of all results on the host
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Vector `key`, 0 <= key < ntotal, to out [d] on the host.
    void reconstruct(idx_t key, float* out) const override;

    /// Vectors i0 to i0 + n - 1 to out [n, d] on the host.
    void reconstruct_n(idx_t i0, idx_t n, float* out) const override;

    /// Replaces the CPU index's metric, dimensions and vectors by ours.
    void copyTo(faiss::IndexFlat* index) const;

   private:
    void searchPaged_(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params) const;
    void requireFlat_(const char* what) const;
    void addPieces_(idx_t n, const float* x);
    /// Fields that a user may have set go to the shards.
    void tellShards_() const;

    std::unique_ptr<detail::ShardSet> set_;
};

} // namespace faiss_bits::gpu
