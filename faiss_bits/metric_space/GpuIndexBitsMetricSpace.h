#pragma once

#include <cstdint>
#include <memory>

#include <faiss/gpu/GpuIndex.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/range/GpuRangeResult.h"

namespace faiss {
struct RangeSearchResult;
}

namespace faiss_bits {

class IndexMetricSpace;
namespace detail {
struct MetricContents;
} // namespace detail

namespace gpu {

namespace detail {
struct GpuContext;
} // namespace detail

/// Exact search on one GPU by an index for metric spaces, which computes fewer
/// distances than brute force where the triangle inequality lets it: what
/// GpuIndexBitsListOfClusters and GpuIndexBitsSSS share.
///
/// Metrics  METRIC_L2 (squared), METRIC_L1, METRIC_Linf
/// Result   as of GpuIndexBitsFlat, bit for bit: canonical distances
///          (docs/exact.md). Neighbours best first, equal distances by the
///          lower id; ranges by ascending id. A distance that is NaN is never
///          returned; fewer than k: id -1 with distance FLT_MAX
/// Values   vectors with NaN or infinities are stored and looked at by every
///          search, but are in no cluster and no table
/// Making   on the GPU, the same bits as on the CPU: anew by the first search
///          after vectors were added, or by build(). It is for collections that
///          stay
/// Filters  none: FaissException for SearchParameters::sel
/// Limits   k >= 1, above ntotal as well; at most 2^31 - 1 vectors
/// Pointers x, distances and labels may each lie on the host or on the index's
///          device, in any mix
/// Stream   work is ordered on the resources' stream of the device; every
///          search waits for it. No capture in a CUDA graph
/// Memory   8 d bytes a vector on the GPU, as they are kept by their ids and by
///          groups, and 4 d more while query_major is set; scratch from the
///          resources' temporary memory, up to 1 GiB, or 28 bytes a vector
///          where that is more
/// Errors   FaissException naming the argument and its value. The index then is
///          what it was before
/// Threads  one call at a time per GpuResources, as in FAISS
/// Files    write() and read(): files of the classes on the CPU, a format of
///          our own. FAISS's index_gpu_to_cpu does not know the class: copyTo()
class GpuIndexBitsMetricSpace : public faiss::gpu::GpuIndex {
   public:
    /// Ranges are searched for as in Barrientos et al. 2012, IV: a block of
    /// threads a query. To compare with: the same answers, mostly in more time.
    bool query_major = false;

    ~GpuIndexBitsMetricSpace() override;

    /// Adds n vectors x [n, d]. All or none.
    void add(idx_t n, const float* x) override;

    /// As add. ids must be null: the index numbers its vectors itself (use
    /// IndexIDMap for other ids).
    void add_with_ids(idx_t n, const float* x, const idx_t* ids) override;

    /// Removes all vectors.
    void reset() override;

    /// Makes the index, unless it is made.
    void build();
    /// Whether it is.
    bool isBuilt() const;

    /// Finds the k nearest vectors of each of n queries.
    ///
    /// x          [n, d]
    /// distances  [n, k]
    /// labels     [n, k]
    /// params     null, or a SearchParameters without a selector
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds all vectors with distance < radius, of every query by ascending
    /// id, as a result on the host. result->nq must be n. radius: not NaN; 0
    /// and less give nothing.
    ///
    /// params     null, a SearchParameters without a selector, or a
    ///            SearchParametersBitsFlat with max_results alone
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// The same with results that stay on the device. Where it throws the
    /// result holds nothing of use.
    void rangeSearchOnDevice(
            idx_t n,
            const float* x,
            float radius,
            GpuRangeResult& result,
            const faiss::SearchParameters* params = nullptr) const;

    /// search(), and the vectors of the labels to recons [n, k, d]: zeros where
    /// the label is -1.
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

    /// Vector `key`, 0 <= key < ntotal, to out [d].
    void reconstruct(idx_t key, float* out) const override;

    /// Vectors i0 to i0 + n - 1 to out [n, d].
    void reconstruct_n(idx_t i0, idx_t n, float* out) const override;

    /// Vectors keys [n], on the host or the device, to out [n, d]. The key -1
    /// gives zeros; others outside 0 .. ntotal - 1 an exception.
    void reconstruct_batch(idx_t n, const idx_t* keys, float* out)
            const override;

    /// Distances that searches computed since the index was made, or since
    /// resetDistances(): those to centers and pivots included.
    uint64_t numDistances() const;
    /// numDistances() begins at zero again.
    void resetDistances();

    /// Writes vectors, options and, where it is made, the index.
    void write(const char* fname) const;
    /// Replaces everything, metric and dimensions too, by what is in a file of
    /// this class or of that on the CPU.
    void read(const char* fname);

   protected:
    bool addImplRequiresIDs_() const override;
    void addImpl_(ImplSize n, const float* x, const idx_t* ids) override;
    void searchImpl_(
            ImplSize n,
            const float* x,
            int k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params) const override;

   private:
    struct State;
    friend class GpuIndexBitsListOfClusters;
    friend class GpuIndexBitsSSS;
    friend class GpuIndexBitsMetricSpaceShards;

    GpuIndexBitsMetricSpace(
            std::shared_ptr<faiss::gpu::GpuResources> resources,
            faiss_bits::detail::MetricContents contents,
            faiss::gpu::GpuIndexConfig config);

    /// From and to the class on the CPU.
    void copyFrom_(const IndexMetricSpace& index);
    void copyTo_(IndexMetricSpace& index) const;
    const faiss_bits::detail::MetricContents& options_() const;

    /// range(run, first) for pages of the queries, from `first` on each.
    template <class Range>
    void rangePages_(
            const detail::GpuContext& context,
            idx_t n,
            const float* x,
            const Range& range) const;

    void build_() const;
    void setContents_(faiss_bits::detail::MetricContents contents);
    faiss_bits::detail::MetricContents contents_() const;

    std::unique_ptr<State> state_;
};

} // namespace gpu
} // namespace faiss_bits
