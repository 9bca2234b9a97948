#pragma once

#include <faiss/IndexIVFFlat.h>

#include "faiss_bits/common/FaissCompat.h"
#ifndef SWIG
#include "faiss_bits/flat/SearchCounters.h"
#endif
#include "kernels/common/SearchMode.h"

namespace faiss_bits {

namespace detail {
struct FusedIvfSearch;
}
namespace cpu {
template <class T>
struct RangeResult;
}

/// Inverted lists of float32 vectors on the CPU: faiss::IndexIVFFlat with its
/// k-nearest-neighbour and range searches replaced by fused kernels
/// (kernels/cpu/ivf). Many queries of k-NN searches go through the lists
/// together, so that each is read once for all that probe it. Lists, training,
/// adding, removing and files are FAISS's, and it can stand wherever FAISS
/// takes an IndexIVFFlat.
/// Arguments that FAISS does not survive (adding vectors with NaN, a range
/// search before training) are looked at first.
///
/// Metrics  METRIC_L2 (squared) and METRIC_INNER_PRODUCT; cosines by the latter
///          of unit vectors
/// Result   of the vectors in the nprobe lists whose centroids are nearest:
///          best first; equal distances: lower id first; a vector at NaN is no
///          result; fewer than k: id -1 with distance FLT_MAX (inner product:
///          -FLT_MAX). Same input, same output bits, whatever the batch, the
///          machine and the number of threads
/// Arith.   canonical distances (docs/exact.md): in float64, rounded once; the
///          order is theirs
/// Lists    those that the quantizer finds. Where it is an IndexFlat,
///          IndexFlatL2, IndexFlatIP or IndexFusedFlat our kernels find them,
///          by canonical distances too
/// Filters  SearchParameters.sel, any IDSelector, as an index of the selected
///          vectors alone in the same lists: one is_member call for each vector
///          in the lists that are probed, on the calling thread
/// Limits   k >= 1 and nprobe >= 1, of which no more than nlist count; lists
///          that some thousand queries probe have fewer than 2^31 vectors
///          together
/// Threads  as many as OpenMP would use (omp_set_num_threads). Calls that do
///          not change the index may run at the same time
/// Memory   4 d + 8 bytes a vector, and scratch during a search: about 16 MiB a
///          thread, more for k of many thousands (kernels/cpu/ivf/IvfKnn.h)
/// Errors   FaissException naming the argument and its value, std::bad_alloc
///          when memory is short
/// Interrupts  a search asks faiss::InterruptCallback now and then and ends
///          with FaissException, its outputs undefined, if that says so
/// Files    faiss::write_index writes what it writes for an IndexIVFFlat; what
///          faiss::read_index makes of the file is an IndexIVFFlat, of which
///          IndexFusedIVFFlat(index) or index_to_fused (FusedCloner.h) makes
///          ours
/// Copies   the copy constructor; faiss::clone_index makes an IndexIVFFlat with
///          the same lists, as it does not know our class: index_to_fused keeps
///          it
///
/// parallel_mode says how FAISS shares work among threads, which our searches
/// do as it is less work: range_search takes 0, 1 and 2, as FAISS's has no
/// others. The bit that asks for no new heaps is refused. What FAISS offers for
/// range searches in given lists (range_search_preassigned) is FAISS's.
class IndexFusedIVFFlat : public faiss::IndexIVFFlat {
   public:
    /// An empty index for vectors of d >= 1 dimensions in nlist >= 1 lists, to
    /// be trained. The quantizer (not null, of d dimensions) is the caller's
    /// and outlives the index, unless own_fields is set.
    IndexFusedIVFFlat(
            faiss::Index* quantizer,
            size_t d,
            size_t nlist,
            faiss::MetricType metric = faiss::METRIC_L2);

    /// A copy of an IndexIVFFlat or IndexFusedIVFFlat, not of a class derived
    /// from them: lists, quantizer and settings. The quantizer of the copy, its
    /// own, is an IndexFusedFlat where theirs is a flat index; lists that are
    /// no ArrayInvertedLists are copied into such. O(ntotal * d).
    explicit IndexFusedIVFFlat(const faiss::IndexIVFFlat& index);
    /// The same.
    IndexFusedIVFFlat(const IndexFusedIVFFlat& index);
    IndexFusedIVFFlat& operator=(const IndexFusedIVFFlat&) = delete;

#ifndef SWIG
    /// Takes lists and quantizer as they are, and who owns them. The index is
    /// left without lists and quantizer, to be destroyed.
    explicit IndexFusedIVFFlat(faiss::IndexIVFFlat&& index);
#endif

    /// What the searches did since the index was made, or since reset_stats().
    /// A copy begins at zero.
    SearchStats stats() const;
    /// stats() begins at zero again.
    void reset_stats();

    /// Adds n vectors x [n, d] with ids [n], or, where ids is null, those from
    /// ntotal on; each goes to the list that quantizer->assign says. One
    /// without a nearest list (it has NaN) is counted and is in no list, as in
    /// FAISS.
    void add_with_ids(idx_t n, const float* x, const idx_t* ids) override;

    /// Replaces the vectors of ids [n] by x [n, d], in the lists that are
    /// nearest to these. Needs a direct map (make_direct_map,
    /// set_direct_map_type). One in an array takes the last of an id that is
    /// there twice, as in FAISS; of one in a table it is refused, as are ids
    /// that are in no list and vectors that are nearest to none:
    /// FaissException, and the index is what it was.
    void update_vectors(int n, const idx_t* ids, const float* x) override;

    /// Finds the k nearest vectors of each of n queries in nprobe lists each.
    ///
    /// x          [n, d]
    /// distances  [n, k]
    /// labels     [n, k]
    /// params     null, a SearchParametersIVF (nprobe, sel, quantizer_params,
    ///            max_codes: that many vectors of a query's lists, nearest list
    ///            first, are looked at), or a plain SearchParameters, whose
    ///            `sel` filters. FaissException for what is set besides
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds all vectors with distance < radius (inner product > radius) in the
    /// nprobe lists that search() looks at: canonical distances
    /// (docs/exact.md), which the radius is compared with. The results of a
    /// query come list by list, nearest list first, in the order of the list.
    /// Same input, same output bits, whatever the batch, the machine and the
    /// number of threads.
    ///
    /// x       [n, d]; radius any number but NaN; result new, for n queries
    /// params  as search(), but for max_codes: whole lists are looked at, as by
    ///         FAISS's range search
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// search() in given lists.
    ///
    /// assign         [n, nprobe], nprobe as of params or the index, no more
    ///                than nlist: numbers of lists, below 0: none. A list that
    ///                is named twice is searched twice
    /// centroid_dis   not read, may be null
    /// store_pairs    labels are list << 32 | place in the list; not with a sel
    /// stats          what was searched is added to it; may be null
    void search_preassigned(
            idx_t n,
            const float* x,
            idx_t k,
            const idx_t* assign,
            const float* centroid_dis,
            float* distances,
            idx_t* labels,
            bool store_pairs,
            const faiss::IVFSearchParameters* params = nullptr,
            faiss::IndexIVFStats* stats = nullptr) const override;

    /// search(), and the vectors that it found to recons [n, k, d]; NaN where
    /// there is none.
    void search_and_reconstruct(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            float* recons,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Throws unless merge_from() can take over the lists of otherIndex:
    /// another IndexFusedIVFFlat or IndexIVFFlat, with the same dimension,
    /// metric and centroids, and no direct map in either.
    void check_compatible_for_merge(
            const faiss::Index& otherIndex) const override;

   private:
    /// What a search is asked for, checked.
    detail::FusedIvfSearch searchOf_(
            idx_t n,
            idx_t k,
            const faiss::SearchParameters* params) const;
    /// search() of checked arguments; labels are pairs with givePlaces.
    void searchAll_(
            const detail::FusedIvfSearch& search,
            const float* x,
            float* distances,
            idx_t* labels,
            bool givePlaces) const;
    /// range_search() of some queries, with checked arguments.
    cpu::RangeResult<float> rangeOf_(
            const detail::FusedIvfSearch& search,
            idx_t n,
            const float* x,
            float radius) const;
    /// In given lists, which are counted in ivfStats.
    cpu::RangeResult<float> rangeInLists_(
            const detail::FusedIvfSearch& search,
            idx_t n,
            const float* x,
            float radius,
            const idx_t* lists,
            faiss::IndexIVFStats& ivfStats) const;
    /// In given lists.
    void searchLists_(
            const detail::FusedIvfSearch& search,
            idx_t n,
            const float* x,
            const idx_t* assign,
            float* distances,
            idx_t* labels,
            bool givePlaces,
            faiss::IndexIVFStats* ivfStats) const;

    mutable detail::SearchCounters counters_;
};

/// True if an IndexFusedIVFFlat can be made of it: an IndexIVFFlat or
/// IndexFusedIVFFlat itself, no class derived from them, by L2 or inner
/// product, with lists and a quantizer.
bool isPlainIvf(const faiss::IndexIVFFlat& index);

} // namespace faiss_bits
