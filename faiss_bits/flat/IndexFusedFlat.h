#pragma once

#include <cstdint>
#include <string>

#include <faiss/IndexFlat.h>

#include "faiss_bits/common/FaissCompat.h"
#ifndef SWIG
#include "faiss_bits/flat/SearchCounters.h"
#endif
#include "kernels/common/SearchMode.h"
#include "kernels/cpu/Choice.h"

namespace faiss_bits {

/// Exact search on the CPU: faiss::IndexFlat with its searches replaced by the
/// fused kernels (kernels/cpu/Knn.h). It can stand wherever FAISS takes an
/// IndexFlat: as a quantizer, inside an IndexIDMap or IndexPreTransform, for
/// k-means, on the way to a GPU.
///
/// Metrics  METRIC_L2 (squared), METRIC_INNER_PRODUCT, METRIC_L1, METRIC_Linf,
///          METRIC_Lp (metric_arg is p, > 0; sum of |difference|^p, no root),
///          METRIC_Canberra, METRIC_BrayCurtis, METRIC_JensenShannon and, from
///          FAISS 1.7.4 on, METRIC_Jaccard (the largest first). FAISS has no
///          cosine metric: search unit vectors by inner product, or use
///          bfKnnFused with Metric::Cosine
/// Result   best first; equal distances: lower id first; a vector at NaN is no
///          result; fewer than k: id -1 with distance FLT_MAX (inner
///          product: -FLT_MAX), as on the GPU (what FAISS's own CPU indexes
///          put there differs between releases). Same input, same output bits,
///          whatever the number of threads
/// Arith.   canonical distances (docs/exact.md): in float64, rounded once to
///          float32, alike on every machine. float32 finds the candidates, and
///          proves that they are enough (Canberra and those behind it:
///          canonical distances of all vectors). search_mode Plain: float32
///          alone, but for these four
/// Filters  search and range_search honour SearchParameters.sel, any
///          IDSelector, by listing the ids it selects first: one is_member call
///          an id on the calling thread (none for ranges and arrays of ids)
/// Limits   k >= 1, above ntotal as well; at most 2^31 - 1 vectors
/// Threads  as many as OpenMP would use (omp_set_num_threads). Calls that do
///          not change the index may run at the same time
/// Memory   4 d bytes a vector, and scratch during a search (kernels/cpu)
/// Errors   FaissException naming the argument and its value, std::bad_alloc
///          when memory is short. The index then is what it was before
/// Interrupts  a search asks faiss::InterruptCallback now and then and ends
///          with FaissException, its outputs undefined, if that says so
/// Files    faiss::write_index writes what it writes for an IndexFlat; what
///          faiss::read_index makes of the file is an IndexFlat, of which
///          IndexFusedFlat(index) or index_to_fused (FusedCloner.h) makes ours.
///          `choice` and `search_mode` are not stored
/// Copies   the copy constructor; faiss::clone_index makes an IndexFlat with
///          the same vectors, as it does not know our class: index_to_fused
///          keeps it
/// Source   Yu et al. 2015 (GSKNN)
class IndexFusedFlat : public faiss::IndexFlat {
   public:
    /// What the searches are made to use: variant, blocks, instruction set. By
    /// default the cost model chooses. Never changes what a search promises.
    cpu::Choice choice;

    /// Certified: canonical distances in every place. Plain: those of the
    /// fastest arithmetic, whose last bits depend on the size of the batch and
    /// on the machine. Fast: as Certified.
    SearchMode search_mode = SearchMode::Certified;

    /// What the certified searches did since the index was made, or since
    /// reset_stats(). A copy begins at zero.
    SearchStats stats() const;
    /// stats() begins at zero again.
    void reset_stats();

    /// An empty index for vectors of d >= 1 dimensions. metricArg is the p of
    /// METRIC_Lp, which may also be set later as metric_arg; other metrics have
    /// no argument, and 0 is needed.
    explicit IndexFusedFlat(
            int d,
            faiss::MetricType metric = faiss::METRIC_L2,
            float metricArg = 0);

    /// The same vectors and metric as another flat index. O(ntotal * d) copied.
    explicit IndexFusedFlat(const faiss::IndexFlat& index);

#ifndef SWIG
    /// As above, but an IndexFlat, IndexFlatL2 or IndexFlatIP gives its memory
    /// away and is empty afterwards; nothing is copied then.
    explicit IndexFusedFlat(faiss::IndexFlat&& index);
#endif

    /// Adds n vectors x [n, d]. All or none.
    void add(idx_t n, const float* x) override;

    /// Finds the k nearest vectors of each of n queries.
    ///
    /// x          [n, d]
    /// distances  [n, k]
    /// labels     [n, k]
    /// params     null or a plain SearchParameters, whose `sel` filters
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds all vectors with distance < radius (inner product > radius), of
    /// every query by ascending id. radius is any number but NaN; result is
    /// new, and result->nq must be n.
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// search() without the distances; labels is [n, k].
    void assign(idx_t n, const float* x, idx_t* labels, idx_t k = 1)
            const override;

    /// The k nearest among some stored vectors of each of some stored vectors:
    /// the step of all-nearest-neighbour solvers. A vector that is in both
    /// lists finds itself.
    ///
    /// query_ids      [n_query_ids] ids of the vectors to search for, any
    ///                order, repeats allowed; null: 0 .. n_query_ids - 1
    /// reference_ids  [n_reference_ids] ids of the vectors to search in, any
    ///                order, each once; null: 0 .. n_reference_ids - 1
    /// distances      [n_query_ids, k]
    /// labels         [n_query_ids, k], ids of this index
    void knn_subset(
            idx_t n_query_ids,
            const idx_t* query_ids,
            idx_t n_reference_ids,
            const idx_t* reference_ids,
            idx_t k,
            float* distances,
            idx_t* labels) const;

    /// What search(n, ..., k, ...) would do now, in one line: variant, blocks,
    /// instruction set, threads and the predicted time.
    std::string plan(idx_t n, idx_t k) const;

    /// Removes the selected vectors and moves those behind them up, so that
    /// their ids change, as in FAISS. Returns how many it were.
    size_t remove_ids(const faiss::IDSelector& sel) override;

    /// Vector `key`, 0 <= key < ntotal, to recons [d].
    void reconstruct(idx_t key, float* recons) const override;

    /// Vectors i0 to i0 + ni - 1 to recons [ni, d].
    void reconstruct_n(idx_t i0, idx_t ni, float* recons) const override;

    /// Vectors keys [n] to recons [n, d]. The key -1, "no neighbour", gives
    /// zeros; other keys outside 0 .. ntotal - 1 an exception.
    void reconstruct_batch(idx_t n, const idx_t* keys, float* recons)
            const override;

    /// residuals [n, d] = xs [n, d] - vectors keys [n]. The key -1 gives NaN;
    /// other keys outside 0 .. ntotal - 1 an exception.
    void compute_residual_n(
            idx_t n,
            const float* xs,
            float* residuals,
            const idx_t* keys) const override;

    /// What merge_from takes over: another IndexFusedFlat, or an IndexFlat,
    /// IndexFlatL2 or IndexFlatIP, of the same dimensions and metric.
    void check_compatible_for_merge(
            const faiss::Index& otherIndex) const override;

   private:
    mutable detail::SearchCounters counters_;
};

/// True if the index keeps its vectors as an IndexFlat does, row after row, and
/// has nothing besides: IndexFlat, IndexFlatL2, IndexFlatIP or IndexFusedFlat
/// themselves, not classes derived from them.
bool isPlainFlat(const faiss::Index& index);

} // namespace faiss_bits
