#pragma once

#include <memory>

#include <faiss/gpu/GpuIndexIVF.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/range/GpuRangeResult.h"

namespace faiss {
struct RangeSearchResult;
} // namespace faiss

namespace faiss_bits {
struct IvfLists;
} // namespace faiss_bits

namespace faiss_bits::gpu {

namespace detail {
struct IvfAccess;
struct IvfIndex;
} // namespace detail

/// What our classes of inverted lists have in common: the methods of FAISS's
/// class that search and that read or change vectors, replaced.
///
/// FaissIndex  faiss::gpu::GpuIndexIVFFlat, GpuIndexIVFScalarQuantizer or
///             GpuIndexIVFPQ: the base of GpuIndexBitsIVFFlat,
///             GpuIndexBitsIVFScalarQuantizer or GpuIndexBitsIVFPQ, whose
///             comments say what is promised of results, memory and errors
///
/// Vectors are what the lists store: where these are codes, the decoded ones.
template <class FaissIndex>
class GpuIndexBitsIVF : public FaissIndex {
   public:
    /// Lists that a search looks at, 1 or more.
    void setNumProbes(int nprobe);

    /// Finds the k nearest vectors of each of n queries in nprobe lists each.
    ///
    /// x [n, d], distances [n, k], labels [n, k]; params as the class has them
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
    /// NaN; params as of search(); result new, for n queries. Of every query in
    /// the order of the lists, nearest first, and of their vectors, as FAISS on
    /// the CPU
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

    /// The vector of an id to out [d]: the one whose distances searches return.
    /// Where more than one has the id, as below, that of the lowest list and
    /// place.
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
    /// ones are added (codes are made anew) to the lists that are nearest to
    /// them. Both arrays on the host or on the device. Not with INDICES_IVF,
    /// which keeps no ids.
    ///
    /// Errors  FaissException naming the id: one that is in no list, is there
    ///         twice, or is that of several vectors; a vector that is nearest
    ///         to no list, as it is not finite. After any error, of memory too,
    ///         all vectors are as they were
    /// Memory  of the lists for the old and the new vectors
    /// Cost    as add_with_ids(), and twice a filter; waits for the device
    void update_vectors(idx_t n, const idx_t* ids, const float* x);

   protected:
#ifndef SWIG // it takes this for a second FaissIndex
    using FaissIndex::FaissIndex;
#endif

    /// FaissIndex with a coarse quantizer of its own.
    template <class... Args>
    GpuIndexBitsIVF(
            faiss::gpu::GpuResourcesProvider* provider,
            std::unique_ptr<faiss::Index> coarseQuantizer,
            Args... args)
            : FaissIndex(provider, coarseQuantizer.get(), args...) {
        this->own_fields = true;
        coarseQuantizer.release();
    }

    /// Becomes `copy`, which is left with no quantizer and no lists, but for
    /// what the classes have of their own; of so many probes.
    void take_(GpuIndexBitsIVF& copy, size_t numProbes) noexcept;

    /// x, distances and labels on our device.
    void searchImpl_(
            ImplSize n,
            const float* x,
            int k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params) const override;

    /// The lists of `index_`, which is trained, as kernels read them.
    virtual IvfLists ivfLists_() const = 0;

   private:
    friend struct detail::IvfAccess;

    /// As searches see it.
    detail::IvfIndex ivfIndex_() const;
};

} // namespace faiss_bits::gpu
