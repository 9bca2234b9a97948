#pragma once

#include <memory>

#include <faiss/gpu/GpuIndexIVFFlat.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/ivf/SearchParametersBitsIVF.h"
#include "faiss_bits/range/GpuRangeResult.h"

namespace faiss {
struct RangeSearchResult;
} // namespace faiss

namespace faiss_bits::gpu {

namespace detail {
struct IvfAccess;
struct IvfIndex;
} // namespace detail

/// Inverted lists of float32 vectors on one GPU: faiss::gpu::GpuIndexIVFFlat
/// with its search replaced. Lists, training, adding and copying are FAISS's,
/// and it can stand wherever FAISS takes a GpuIndexIVFFlat, index_gpu_to_cpu
/// included.
///
/// Metrics  METRIC_L2 (squared) and METRIC_INNER_PRODUCT; cosines by the latter
///          of unit vectors
/// Result   of the vectors in the nprobe lists whose centroids are nearest:
///          best first; equal distances: lower id first (with INDICES_CPU and
///          INDICES_IVF, which keep no ids on the GPU, lower list and place). A
///          distance that is NaN is never returned. Where there are fewer than
///          k vectors the rest is id -1 with distance FLT_MAX, or -FLT_MAX for
///          inner products. Same input, same output bits, whatever the batch
/// Distance computed in float64 by a formula that is written down, and rounded
///          once; the order is theirs. docs/exact.md
/// Lists    those that the quantizer finds, in its mode; by default a certified
///          GpuIndexBitsFlat, so that they are exact as well. One of float32
///          that searches certified on the same resources is not called for a
///          few queries, whose lists the search finds itself: the same ones,
///          and its stats() count them
/// Limits   1 <= k < 2^31 - 1, 1 <= nprobe, of which no more than nlist count;
///          no FAISS limit of 2048 applies. The lists that a query probes have
///          fewer than 2^31 vectors together
/// Pointers x, distances and labels may each lie on the host or on the index's
///          device, in any mix; pages, streams and interrupts as of
///          GpuIndexBitsFlat. A search waits for the device where many queries
///          share lists (kernels/ivf/IvfKnn.h; not while its stream is being
///          captured), with INDICES_CPU, and with a quantizer on the CPU
/// Params   SearchParametersIVF: nprobe, quantizer_params and sel; a plain
///          SearchParameters: sel. A SearchParametersBitsIVF or, for the nprobe
///          of the index, a SearchParametersBitsFlat: max_results of a range
///          search too. FaissException for what is set besides (max_codes,
///          resources)
/// Filters  every IDSelector, by is_member of the vectors' ids (with
///          INDICES_IVF these are list << 32 | place): the result is that of
///          an index of the selected vectors alone. FAISS's own and
///          DeviceSelector, of any n, are evaluated on the GPU at each call,
///          for all vectors; of any other, is_member is asked for each of them
///          by the calling thread. While a stream is being captured those are
///          refused that read host memory, INDICES_CPU with them
/// Memory   scratch from the resources' temporary memory, up to 448 MiB, of
///          rangeSearchOnDevice up to 1 GiB; what that memory cannot give comes
///          from cudaMalloc. While a selector is evaluated 112 MiB, and 4 to 16
///          bytes for 32 vectors an operand
/// Errors   FaissException naming the argument and its value
/// Threads  one call at a time per GpuResources, as in FAISS
/// Source   Johnson et al. 2017, 5.2; docs/design/ivf.md
///
/// copyFrom, setNumProbes and search_preassigned are not virtual in every
/// FAISS: called through a pointer to the base class they are FAISS's own, with
/// its limits.
class GpuIndexBitsIVFFlat : public faiss::gpu::GpuIndexIVFFlat {
   public:
    /// Copies a CPU index (not null) to the GPU, with its quantizer.
    GpuIndexBitsIVFFlat(
            faiss::gpu::GpuResourcesProvider* provider,
            const faiss::IndexIVFFlat* index,
            faiss::gpu::GpuIndexIVFFlatConfig config =
                    faiss::gpu::GpuIndexIVFFlatConfig());

    /// An empty index for vectors of dims >= 1 dimensions in nlist >= 1 lists,
    /// to be trained. Its quantizer is a GpuIndexBitsFlat.
    GpuIndexBitsIVFFlat(
            faiss::gpu::GpuResourcesProvider* provider,
            int dims,
            int nlist,
            faiss::MetricType metric = faiss::METRIC_L2,
            faiss::gpu::GpuIndexIVFFlatConfig config =
                    faiss::gpu::GpuIndexIVFFlatConfig());

    /// The same with a quantizer of the caller's (not null), on the CPU or on
    /// the same GPU, which outlives the index.
    GpuIndexBitsIVFFlat(
            faiss::gpu::GpuResourcesProvider* provider,
            faiss::Index* coarseQuantizer,
            int dims,
            int nlist,
            faiss::MetricType metric = faiss::METRIC_L2,
            faiss::gpu::GpuIndexIVFFlatConfig config =
                    faiss::gpu::GpuIndexIVFFlatConfig());

    /// Replaces quantizer, lists and nprobe by those of a CPU index. The new
    /// quantizer is a GpuIndexBitsFlat where theirs is an IndexFlat. The old
    /// ones stay until all is copied, so that there must be memory for both;
    /// if that fails they are kept.
    void copyFrom(const faiss::IndexIVFFlat* index);

    /// Lists that a search looks at, 1 or more.
    void setNumProbes(int nprobe);

    /// Finds the k nearest vectors of each of n queries in nprobe lists each.
    ///
    /// x [n, d], distances [n, k], labels [n, k]; params as above
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds all vectors of nprobe lists with distance < radius (inner product
    /// > radius), for each of n queries.
    ///
    /// x [n, d], on the host or on the index's device; radius any number but
    /// NaN; params as above; result new, for n queries. Of every query in the
    /// order of the lists, nearest first, and of their vectors, as FAISS on the
    /// CPU
    ///
    /// Cost   all canonical distances, as a search without estimates by tensor
    ///        cores; waits for the device. Memory of the result on the host,
    ///        twice for a moment, and scratch as search()
    /// Errors FaissException, as search(); also where max_results is less than
    ///        what is in range (which is said). The result is then as it was
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// The same with results that stay on the device, in the same order: rows
    /// of a sparse matrix. Where it throws the result holds nothing of use.
    /// With INDICES_CPU labels take the way to the host and back.
    void rangeSearchOnDevice(
            idx_t n,
            const float* x,
            float radius,
            GpuRangeResult& result,
            const faiss::SearchParameters* params = nullptr) const;

    /// search(), and the vectors of the labels to recons [n, k, d]: as
    /// reconstruct_batch(), zeros where there is none. Each array on the host
    /// or on the device; waits for the device.
    void search_and_reconstruct(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            float* recons,
            const faiss::SearchParameters* params = nullptr) const override;

    /// search() without the distances; labels is [n, k].
    void assign(idx_t n, const float* x, idx_t* labels, idx_t k = 1)
            const override;

#if FAISS_BITS_FAISS_HAS_NUMERIC_TYPE
    /// As search. Only NumericType::Float32 is supported.
    void search_ex(
            idx_t n,
            const void* x,
            faiss::NumericType numericType,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;
#endif

    /// search() in given lists.
    ///
    /// assign         [n, nprobe]: numbers of lists; others, such as -1: none
    /// centroid_dis   not read, may be null
    /// store_pairs    labels are list << 32 | place in the list
    ///
    /// The last argument, which FAISS has since 1.7.4, must be null.
    void search_preassigned(
            idx_t n,
            const float* x,
            idx_t k,
            const idx_t* assign,
            const float* centroid_dis,
            float* distances,
            idx_t* labels,
            bool store_pairs,
            const faiss::SearchParametersIVF* params = nullptr
#if FAISS_BITS_FAISS_HAS_IVF_INTERFACE
            ,
            faiss::IndexIVFStats* stats = nullptr) const override;
#else
    ) const;
#endif

    /// The vector of an id to out [d]. Where more than one has it, as below,
    /// that of the lowest list and place.
    ///
    /// No index on the GPU knows where an id is: here and below all ids are
    /// read, 8 bytes a vector, for some keys at a time (a page of 16 MiB of
    /// vectors, or what is on the device), so that many keys in one call cost
    /// little more than one. Waits for the device. With INDICES_IVF ids are
    /// list << 32 | place. An id that is in no list: FaissException
    void reconstruct(idx_t key, float* out) const override;

    /// The vectors of the ids i0 to i0 + n - 1 to out [n, d]; all must be
    /// there.
    void reconstruct_n(idx_t i0, idx_t n, float* out) const override;

    /// Those of keys [n] to out [n, d], each on the host or on the device. The
    /// key -1, "no neighbour", gives zeros.
    void reconstruct_batch(idx_t n, const idx_t* keys, float* out)
            const override;

    /// Lets go of all vectors. What was trained stays.
    void reset() override;

    /// Removes the vectors whose ids are selected, and returns how many. Any
    /// selector, as in a search. In each list the first places that become free
    /// go to the last vectors that stay, as in FAISS on the CPU; with
    /// INDICES_IVF these have other ids then. Memory of the lists is kept for
    /// vectors to come, until reclaimMemory().
    ///
    /// Errors  FaissException, and what is_member throws: nothing has changed
    /// Cost    as a filter, and what moves; waits for the device
    size_t remove_ids(const faiss::IDSelector& sel) override;

    /// Replaces the vectors of ids [n] by x [n, d], as
    /// faiss::IndexIVF::update_vectors: the old ones are removed, and the new
    /// ones are added to the lists that are nearest to them. Both arrays on the
    /// host or on the device. Not with INDICES_IVF, which keeps no ids.
    ///
    /// Errors  FaissException naming the id: one that is in no list, is there
    ///         twice, or is that of several vectors; a vector that is nearest
    ///         to no list, as it is not finite. After any error, of memory too,
    ///         all vectors are as they were
    /// Memory  of the lists for the old and the new vectors
    /// Cost    as add_with_ids(), and twice a filter; waits for the device
    void update_vectors(idx_t n, const idx_t* ids, const float* x);

   protected:
    /// x, distances and labels on our device.
    void searchImpl_(
            ImplSize n,
            const float* x,
            int k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params) const override;

   private:
    friend struct detail::IvfAccess;

    GpuIndexBitsIVFFlat(
            faiss::gpu::GpuResourcesProvider* provider,
            std::unique_ptr<faiss::Index> ownQuantizer,
            int dims,
            int nlist,
            faiss::MetricType metric,
            faiss::gpu::GpuIndexIVFFlatConfig config);

    /// As searches see it.
    detail::IvfIndex ivfIndex_() const;
};

} // namespace faiss_bits::gpu
