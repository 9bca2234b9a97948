#pragma once

#include <memory>
#include <vector>

#include "faiss_bits/many/GpuIndexBitsMany.h"

namespace faiss_bits::gpu {

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
/// Slices   each device has one of the queries, the larger the more replicas
///          it has. One of these searches it; with large arrays on the host two
///          at the same time, if they have resources of their own. Where arrays
///          lie on the first device and each has 2,048 queries it takes over up
///          to an eighth of the others' slices, about as many as their copies
///          cost (L2 and inner product without filters, of flat indexes and of
///          GpuIndexBitsIVFFlat), and where each has as many replicas the
///          slices follow how long each device took in the searches before
///          (certified mode and our inverted lists, whose bits no slice
///          changes). Results of flat indexes that take 64 MB of a slice go to
///          the first device in pieces, while the next piece is searched;
///          kernels of inverted lists write theirs there where they can
/// Pointers x, distances and labels may each lie on the host or on the first
///          device of the list, in any mix. From the host every device fetches
///          its slice by itself, and leaves its results there. What lies on the
///          host is ready when the call is made: pinned or managed memory that
///          work on a stream still writes is not waited for
/// Stream   work on the first device is ordered on the stream of its first
///          resources. With pointers to the device alone a search of flat
///          replicas enqueues and returns, unless memory comes from cudaMalloc
/// Interrupts  as of GpuIndexBitsFlat (Pages)
/// Filters  SearchParameters::sel: any selector; where there are several
///          devices it is read on the host, once a call (n / 8 bytes). Of
///          inverted lists, SearchParametersIVF too
/// Memory   on other devices than the arrays': temporary memory for a slice of
///          queries and results
/// Errors   FaissException, with the device's number where one of them fails.
///          The index then is what it was. A device that has gone cannot be
///          used again by the process (CUDA)
/// Threads  one call at a time. One thread of its own for each device but the
///          first, and one for each second replica that searches; after a
///          search they ask for the next one for half a millisecond before they
///          sleep
/// Graphs   a stream that is being captured is refused
/// Source   Johnson et al. 2017, 5.4 (replication)
class GpuIndexBitsReplicas : public GpuIndexBitsMany {
   public:
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

    /// Of indexes on these devices that are copies of each other. Those of our
    /// own classes can be trained and filled; FAISS's own can not.
    GpuIndexBitsReplicas(
            const DeviceList& devices,
            std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> parts,
            GpuIndexBitsManyConfig config = GpuIndexBitsManyConfig());

    ~GpuIndexBitsReplicas() override;

    /// Vector `key` to out [d], as the first replica does.
    void reconstruct(idx_t key, float* out) const override;

    /// Vectors i0 to i0 + n - 1 to out [n, d], as the first replica does.
    void reconstruct_n(idx_t i0, idx_t n, float* out) const override;

   private:
    PartParameters_ parametersOf_(
            const faiss::SearchParameters* params) const override;
    void addVectors_(idx_t n, const float* x, const idx_t* ids, bool onHost)
            override;
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
