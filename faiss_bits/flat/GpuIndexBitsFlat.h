#pragma once

#include <cstdint>
#include <memory>

#include <faiss/gpu/GpuIndexFlat.h>

#include "faiss_bits/common/FaissCompat.h"
#include "faiss_bits/flat/GpuIndexBitsFlatConfig.h"
#include "faiss_bits/flat/GpuSearchPlan.h"
#include "faiss_bits/flat/SearchParametersBitsFlat.h"
#include "faiss_bits/range/GpuRangeResult.h"
#include "kernels/common/SearchMode.h"
#include "kernels/common/Types.h"

namespace faiss_bits {
struct FlatKnnProblem;
} // namespace faiss_bits

namespace faiss_bits::gpu {

/// Largest k of a search, 2^31 - 1; k may exceed ntotal. FAISS's own limit of
/// 2048 does not apply.
constexpr int kMaxK = INT32_MAX;

namespace detail {
class GpuSearchCounters;
class TemporaryMemory;
class VectorFacts;
enum class ImageUse;
struct GpuContext;
struct PageLimits;
struct Centroids;
#ifndef SWIG
Centroids centroidsFor(
        const GpuContext& context,
        const faiss::Index& quantizer);
#endif
} // namespace detail

/// Exact k-nearest-neighbour search on one GPU: faiss::gpu::GpuIndexFlat with
/// its search replaced. It can stand wherever FAISS takes a GpuIndexFlat,
/// index_gpu_to_cpu and the coarse quantizer of a GPU IVF index included.
///
/// Metrics  METRIC_L2 (squared), METRIC_INNER_PRODUCT, METRIC_L1, METRIC_Linf,
///          METRIC_Lp (p is metric_arg, finite and above 0: sum of
///          |difference|^p, without the root), METRIC_Canberra,
///          METRIC_BrayCurtis, METRIC_JensenShannon, and METRIC_Jaccard where
///          FAISS has it; kernels/canonical/Distance.h says what they are, and
///          that 0 / 0 and 0 log 0 count 0. FAISS has no cosine: search unit
///          vectors by inner product, or use bfKnnBits with Metric::Cosine
/// Result   best first; equal distances: lower id first. A distance that is NaN
///          is never returned, as in FAISS: where fewer than k distances are
///          numbers, the rest is id -1 with distance FLT_MAX, or -FLT_MAX for
///          similarities (inner product, Jaccard). Same input, same output
///          bits, whatever the pages
/// Distance of certified searches: computed in float64 by a formula that is
///          written down, and rounded once; the order is theirs. docs/exact.md
/// Arith.   of plain searches, and of certified ones until candidates are
///          found: float32, never TF32
/// Limits   1 <= k <= kMaxK, above ntotal as well; at most 2^31 - 1 vectors
///          where FAISS counts them by int (1.7.3), else 2^37 - 2^11, of which
///          more than 2^31 - 1 are searched part by part
///          (kernels/knn/parts/PartsKnn.h) and not by range_search. Such a
///          search was tested with 2^31 + 1000 vectors, by the kernels' own
///          function; an index of so many was not
/// Pointers x, distances, labels, keys and outputs may each lie on the host or
///          on the index's device, in any mix
/// Stream   work is ordered on the resources' default stream of the device.
///          With pointers to the device alone a search enqueues and returns,
///          unless memory comes from cudaMalloc (Memory). With a pointer to the
///          host the call returns when the host memory may be used again
/// Pages    host arrays go through the GPU in pages of up to 16 MiB and about
///          0.1 s of work. While one is computed, the one before is copied back
///          and the next one there, through the resources' pinned memory if it
///          has 32 MiB. With results on the host faiss::InterruptCallback is
///          asked meanwhile; if it wants, the search throws FaissException
///          "computation interrupted" when the work under way is done
/// Filters  SearchParameters::sel, see search()
/// Memory   scratch from the resources' temporary memory. What that cannot give
///          comes from cudaMalloc: this and its release wait for the device. So
///          does a search where less than 32 MiB is free there, or less than
///          kernels/knn/FlatKnn.h says for k beyond 2048: about 100 k bytes, or
///          6 n + 16 k where that is less. Host arrays take two pages.
///          Canberra, BrayCurtis, JensenShannon and Jaccard: 4 bytes a vector
///          are kept from a search to the next, until vectors come or go
/// Errors   FaissException naming the argument and its value: k out of range,
///          a null pointer, memory of another device, an unsupported metric, a
///          SearchParameters that would have to be ignored, no CUDA device; and
///          when memory is short. The index then is what it was before
/// Threads  one call at a time per GpuResources, as in FAISS: the index's, and
///          those that a SearchParametersBitsFlat brings, with which threads
///          search at the same time. Calls that change the index run alone
/// Source   Hanak 2023, 3.3, 4.1 and 5.4; Johnson et al. 2017, 5.1
///
/// GpuIndexFlat::copyFrom is not virtual. Called through a pointer to the base
/// class it works, but leaves FAISS's norms, which for float16 storage are
/// computed in float16: call GpuIndexBitsFlat::copyFrom. What FAISS's own code
/// makes of useBFloat16: GpuIndexBitsFlatConfig.
class GpuIndexBitsFlat : public faiss::gpu::GpuIndexFlat {
   public:
    /// Certified (default): exact places and distances, the same bits whatever
    /// the batch and the machine. Plain: FAISS's arithmetic. Fast: large
    /// searches by L2 or inner product have the distances of 16-bit products;
    /// others are certified. docs/exact.md has what the difference costs.
    SearchMode search_mode = SearchMode::Certified;

    /// Copies a CPU index (not null) to the GPU. O(ntotal * d) copied.
    GpuIndexBitsFlat(
            faiss::gpu::GpuResourcesProvider* provider,
            const faiss::IndexFlat* index,
            GpuIndexBitsFlatConfig config = GpuIndexBitsFlatConfig());

    /// The same with resources that are shared.
    GpuIndexBitsFlat(
            std::shared_ptr<faiss::gpu::GpuResources> resources,
            const faiss::IndexFlat* index,
            GpuIndexBitsFlatConfig config = GpuIndexBitsFlatConfig());

    /// An empty index for vectors of dims >= 1 dimensions.
    GpuIndexBitsFlat(
            faiss::gpu::GpuResourcesProvider* provider,
            int dims,
            faiss::MetricType metric,
            GpuIndexBitsFlatConfig config = GpuIndexBitsFlatConfig());

    /// The same with resources that are shared.
    GpuIndexBitsFlat(
            std::shared_ptr<faiss::gpu::GpuResources> resources,
            int dims,
            faiss::MetricType metric,
            GpuIndexBitsFlatConfig config = GpuIndexBitsFlatConfig());

    ~GpuIndexBitsFlat() override;

    /// Replaces metric, dimensions and vectors by those of a CPU index. Old
    /// and new vectors are on the GPU together for a moment.
    void copyFrom(const faiss::IndexFlat* index);

    /// Replaces the CPU index's metric, dimensions and vectors by ours.
    void copyTo(faiss::IndexFlat* index) const;

    /// Removes all vectors.
    void reset() override;

    /// FAISS's storage of the vectors. With useBFloat16 it does not hold them:
    /// FaissException.
    faiss::gpu::FlatIndex* getGpuData();

    /// Makes room for numVecs vectors in all, so that additions up to there
    /// need not move what is stored.
    void reserve(idx_t numVecs);

    /// Adds n vectors x [n, d]. All or none.
    void add(idx_t n, const float* x) override;

    /// Removes the vectors from numVecs on, 0 <= numVecs <= ntotal: those that
    /// were added last. Their memory stays reserved.
    void truncate(idx_t numVecs);

    /// As add. ids must be null: a flat index numbers its vectors itself (use
    /// IndexIDMap for other ids).
    void add_with_ids(idx_t n, const float* x, const idx_t* ids) override;

    /// Finds the k nearest vectors of each of n queries.
    ///
    /// x          [n, d]
    /// distances  [n, k]
    /// labels     [n, k]
    /// params     null or a plain SearchParameters, whose `sel` filters: the
    ///            result is that of an index of the selected vectors alone,
    ///            with their ids here; the same distances, bit for bit, as
    ///            without; or a SearchParametersBitsFlat (Threads, above)
    ///
    /// Every IDSelector is evaluated at the call, on the GPU where it is
    /// FAISS's own, and nothing of it is kept. A DeviceSelector is evaluated
    /// already, for searches that share one; it must be of this index's ntotal
    /// and device. What a selector on the host reads (ids, bitmap) is copied at
    /// the call; if it is pinned or managed memory, the call waits for the
    /// copy.
    ///
    /// Host arrays go through the GPU in pages (see above), so neither all
    /// queries nor all results need to fit there at once; setMinPagingSize
    /// makes the pages smaller.
    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;

    /// Finds all vectors nearer than a radius to each of n queries.
    ///
    /// x        [n, d], on the host or on the index's device
    /// radius   distances below it are in range, and similarities above it:
    ///          squared for METRIC_L2, as FAISS. Any number but NaN; L2 finds
    ///          nothing for one that is not above zero
    /// result   new, for n queries; on the host. Of a query in ascending ids,
    ///          with the canonical distances of certified searches, whatever
    ///          search_mode is. NaN is in no range
    /// params   as search(); SearchParametersBitsFlat::max_results limits what
    ///          comes back
    ///
    /// Stream   waits for the device, some times for every few thousand
    ///          queries; an error while its stream is being captured
    /// Boxes    float32 vectors of up to 4 dimensions by L2, L1 and Linf, from
    ///          65,536 of them on: when 1,024 queries have come since the
    ///          vectors changed, a copy of them in boxes is made and kept
    ///          (keepSearchImage of the config), and searches look into the
    ///          boxes in range alone. The answers are the same, bit for bit
    /// Memory   up to 0.5 GiB of the resources' temporary memory. Where 4 MiB
    ///          and more are expected in all (12 bytes a result), parts wait on
    ///          the device for their place on the host: up to 4 GiB and a
    ///          quarter of what is free, of the resources' device memory.
    ///          Results of any number: parts beyond go to the host at once,
    ///          which has twice what they take then
    /// Errors   FaissException, as search(); also where max_results is less
    ///          than what is in range (which is said), and "computation
    ///          interrupted". The result then has no arrays, as before
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// The same with results that stay on the device, in scratch of up to about
    /// 1 GiB. Where it throws the result holds nothing of use.
    void rangeSearchOnDevice(
            idx_t n,
            const float* x,
            float radius,
            GpuRangeResult& result,
            const faiss::SearchParameters* params = nullptr) const;

    /// search(), and the vectors that it found to recons [n, k, d]: zeros where
    /// the label is -1. `params` as there.
    void search_and_reconstruct(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            float* recons,
            const faiss::SearchParameters* params = nullptr) const override;

    /// What search(n, x, k, ..., params) would do on this index now; nothing
    /// runs. Memory that another call takes meanwhile, or that is too short for
    /// the 16-bit copy of the vectors, can change it.
    ///
    /// hostArrays  the arrays of the search lie in pageable memory of the host
    ///             (default), or on the device
    ///
    /// Cost   up to 0.1 ms of the host; a selector is read as search() does,
    ///        which asks one that is not FAISS's for every id
    /// Errors FaissException, as search()
    GpuSearchPlan plan(
            idx_t n,
            idx_t k,
            const faiss::SearchParameters* params = nullptr,
            bool hostArrays = true) const;

    /// search() without the distances; labels is [n, k].
    void assign(idx_t n, const float* x, idx_t* labels, idx_t k = 1)
            const override;

#if FAISS_BITS_FAISS_HAS_NUMERIC_TYPE
    /// As add. Only NumericType::Float32 is supported, here and below.
    void add_ex(idx_t n, const void* x, faiss::NumericType numericType)
            override;
    /// As add_with_ids.
    void add_with_ids_ex(
            idx_t n,
            const void* x,
            faiss::NumericType numericType,
            const idx_t* ids) override;
    /// As search.
    void search_ex(
            idx_t n,
            const void* x,
            faiss::NumericType numericType,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params = nullptr) const override;
#endif

    /// What certified searches did since the index was made, or since
    /// reset_stats(). Waits for the index's work on the device, and for all of
    /// the device's where searches were on other resources than the index's.
    SearchStats stats() const;
    /// stats() begins at zero again. Waits likewise.
    void reset_stats();

    /// Vector `key`, 0 <= key < ntotal, to out [d].
    void reconstruct(idx_t key, float* out) const override;

    /// Vectors i0 to i0 + n - 1 to out [n, d].
    void reconstruct_n(idx_t i0, idx_t n, float* out) const override;

    /// Vectors keys [n] to out [n, d]. The key -1, "no neighbour", gives
    /// zeros, as in FAISS. Other keys outside 0..ntotal-1: an exception if
    /// keys is on the host, zeros if it is on the device.
    void reconstruct_batch(idx_t n, const idx_t* keys, float* out)
            const override;

    /// residual [d] = x [d] - vector `key`.
    void compute_residual(const float* x, float* residual, idx_t key)
            const override;

    /// residuals [n, d] = xs [n, d] - vectors keys [n]. The key -1 gives NaN,
    /// as in FAISS. Other keys outside 0..ntotal-1: an exception if keys is on
    /// the host, NaN if it is on the device.
    void compute_residual_n(
            idx_t n,
            const float* xs,
            float* residuals,
            const idx_t* keys) const override;

   protected:
    /// x on our device. ids must be null.
    void addImpl_(ImplSize n, const float* x, const idx_t* ids) override;

    /// x, distances and labels on our device.
    void searchImpl_(
            ImplSize n,
            const float* x,
            int k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* params) const override;

   private:
    DataType storageType_() const;

    /// Where a search with these parameters, which may be null, runs.
    detail::GpuContext contextOf_(const faiss::SearchParameters* params) const;

    /// reconstruct_batch, or compute_residual_n if xs is given.
    void gather_(
            const detail::GpuContext& context,
            idx_t n,
            const float* xs,
            const idx_t* keys,
            float* out) const;

    /// search() of n queries of a batch of `batch` in all, but for pointers
    /// that it brings: how search and plan begin.
    FlatKnnProblem problemOf_(idx_t batch, idx_t n, int k) const;
    detail::PageLimits pageLimits_(
            const detail::GpuContext& context,
            idx_t n,
            int k) const;

    /// What a search on the context's stream needs beside the shape: waits for
    /// changes of the vectors in the stream, gives the problem what is kept of
    /// them, and its queries x, on the device, in the type of the storage, in
    /// memory that is returned.
    detail::TemporaryMemory makeReady_(
            const detail::GpuContext& context,
            const float* x,
            FlatKnnProblem& problem,
            detail::ImageUse* image) const;

#ifndef SWIG
    /// Reads what is kept here.
    friend detail::Centroids detail::centroidsFor(
            const detail::GpuContext& context,
            const faiss::Index& quantizer);
#endif

    /// What search(), assign() and searchImpl_() do.
    struct KnnSearch_;
    /// Both forms of the range search.
    struct RangeSearch_;

    const bool useBFloat16_;
    std::unique_ptr<detail::VectorFacts> facts_;
    std::unique_ptr<detail::GpuSearchCounters> counters_;
};

} // namespace faiss_bits::gpu

// What includes this header has them too.
#include "faiss_bits/flat/GpuIndexBitsFlatSubclasses.h"
