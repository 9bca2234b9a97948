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
struct ReplicaSet;
} // namespace detail

/// An exact index that several GPUs have a copy of each: the queries of a
/// search are split among them. The bits of one GpuIndexBitsFlat in certified
/// mode, whatever the number of copies. The parts are GpuIndexBitsFlat, or
/// inverted lists that index_cpu_to_gpu_multiple has copied.
///
/// Devices  any list, in which a device may come several times; up to 64
///          replicas
/// Metrics  those of GpuIndexBitsFlat; inverted lists: L2 and inner product
/// Result   as of GpuIndexBitsFlat. In plain mode every replica has the stated
///          arithmetic of a search of its slice of the queries
/// Pointers x, distances and labels may each lie on the host or on the first
///          device of the list, in any mix. From the host every device fetches
///          its slice by itself, and leaves its results there
/// Stream   work on the first device is ordered on the stream of its first
///          resources. With pointers to the device alone a search of flat
///          replicas enqueues and returns, unless memory comes from cudaMalloc
/// Ctrl-C   as of GpuIndexBitsFlat (interrupts)
/// Filters  SearchParameters::sel: any selector; where there are several
///          devices it is read on the host, once a call (n / 8 bytes). Of
///          inverted lists, SearchParametersIVF too
/// Memory   on other devices than the arrays': temporary memory for a slice of
///          queries and results
/// Errors   FaissException, with the device's number where one of them fails.
///          The index then is what it was. A device that has gone cannot be
///          used again by the process (CUDA)
/// Threads  one call at a time. One thread of its own for each device but the
///          first
/// Graphs   a stream that is being captured is refused
/// Source   Johnson et al. 2017, 5.4 (replication)
class GpuIndexBitsReplicas : public faiss::Index {
   public:
    /// Of flat replicas, as of GpuIndexBitsFlat; inverted lists are always
    /// certified.
    SearchMode search_mode = SearchMode::Certified;

    /// An empty index for vectors of dims >= 1 dimensions: one replica for each
    /// entry of the list.
    GpuIndexBitsReplicas(
            const DeviceList& devices,
            int dims,
            faiss::MetricType metric,
            GpuIndexBitsManyConfig config = GpuIndexBitsManyConfig());

    /// Copies the vectors of a CPU index (not null) to every device.
    GpuIndexBitsReplicas(
            const DeviceList& devices,
            const faiss::IndexFlat* index,
            GpuIndexBitsManyConfig config = GpuIndexBitsManyConfig());

    /// Of indexes on these devices that are copies of each other. No vectors
    /// can be added.
    GpuIndexBitsReplicas(
            const DeviceList& devices,
            std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> parts,
            GpuIndexBitsManyConfig config = GpuIndexBitsManyConfig());

    ~GpuIndexBitsReplicas() override;

    /// Number of replicas.
    int count() const;
    /// The first device of the list, where arrays may lie.
    int getDevice() const;
    /// The first resources of the list, whose stream orders the calls.
    std::shared_ptr<faiss::gpu::GpuResources> getResources() const;
    /// Replica 0 <= replica < count(); it stays ours.
    const faiss::Index* at(int replica) const;

    /// Adds n vectors x [n, d] to every replica. All or none, whichever device
    /// fails.
    void add(idx_t n, const float* x) override;

    /// As add; ids must be null.
    void add_with_ids(idx_t n, const float* x, const idx_t* ids) override;

    /// Nothing: flat indexes need none, and inverted lists are trained before
    /// they are copied.
    void train(idx_t n, const float* x) override;

    /// Removes all vectors.
    void reset() override;

    /// Finds the k nearest vectors of each of n queries.
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
    /// each of n queries, by range_search of the replicas for their slices.
    ///
    /// x [n, d] on the host or on the first device; result->nq must be n
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Vector `key` to out [d], as the first replica does.
    void reconstruct(idx_t key, float* out) const override;

    /// Vectors i0 to i0 + n - 1 to out [n, d], as the first replica does.
    void reconstruct_n(idx_t i0, idx_t n, float* out) const override;

    /// Replaces the CPU index's metric, dimensions and vectors by ours.
    void copyTo(faiss::IndexFlat* index) const;

   private:
    void searchSlices_(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params) const;
    void requireFlat_(const char* what) const;
    void addToAll_(idx_t n, const float* x);
    void tellReplicas_() const;

    std::unique_ptr<detail::ReplicaSet> set_;
};

} // namespace faiss_bits::gpu
