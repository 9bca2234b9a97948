#pragma once

#include <memory>

#include <faiss/gpu/GpuIndexIVFPQ.h>

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

/// Inverted lists of product codes on one GPU: faiss::gpu::GpuIndexIVFPQ with
/// its search replaced. Lists, training, adding and copying are FAISS's, and it
/// can stand wherever FAISS takes a GpuIndexIVFPQ, index_gpu_to_cpu included.
///
/// Metrics  as of GpuIndexBitsIVFFlat
/// Codes    of M parts of a vector, with 8 bits each, or with
///          config.interleavedLayout 4, 5, 6 or 8; M as FAISS's GPU takes it:
///          with interleavedLayout every divisor of d, else 1, 2, 3, 4, 8, 12,
///          16, 20, 24, 28, 32, 40, 48, 56, 64 or 96 of them, as long as a
///          table of M x 2^bits float32 numbers (float16 with
///          config.useFloat16LookupTables) would fit into 48 KiB
/// Distance exact for the decoded vectors: the canonical one, in float64 by a
///          formula that is written down, rounded once. docs/exact.md. There
///          are no tables of distances: useFloat16LookupTables,
///          usePrecomputedTables and useMMCodeDistance change no result and no
///          time. With usePrecomputedTables FAISS still makes its tables
/// Decoding the list's centroid and the codebook's component, added in float32
///          and rounded once: as reconstruct() of FAISS's CPU index
/// Result   of the decoded vectors in the nprobe lists whose centroids are
///          nearest, as of GpuIndexBitsIVFFlat: best first, equal distances
///          (equal codes of a list among them): lower id first, same bits
///          whatever the batch
/// Lists    as of GpuIndexBitsIVFFlat
/// Limits   1 <= k < 2^31 - 1, 1 <= nprobe, as of GpuIndexBitsIVFFlat
/// Pointers as of GpuIndexBitsIVFFlat
/// Params   as of GpuIndexBitsIVFFlat
/// Filters  as of GpuIndexBitsIVFFlat
/// Memory   scratch from the resources' temporary memory, up to 448 MiB, of
///          rangeSearchOnDevice up to 1 GiB; what that memory cannot give comes
///          from cudaMalloc
/// Errors   FaissException naming the argument and its value
/// Threads  one call at a time per GpuResources, as in FAISS
///
/// The quantizer needs centroids of float32 or float16, and updateQuantizer()
/// is called after they change, as FAISS has it.
///
/// copyFrom, setNumProbes and search_preassigned are not virtual in every
/// FAISS: called through a pointer to the base class they are FAISS's own, with
/// its limits.
class GpuIndexBitsIVFPQ : public faiss::gpu::GpuIndexIVFPQ {
   public:
    /// Copies a CPU index (not null) to the GPU, with its quantizer.
    GpuIndexBitsIVFPQ(
            faiss::gpu::GpuResourcesProvider* provider,
            const faiss::IndexIVFPQ* index,
            faiss::gpu::GpuIndexIVFPQConfig config =
                    faiss::gpu::GpuIndexIVFPQConfig());

    /// An empty index for vectors of dims >= 1 dimensions in nlist >= 1 lists,
    /// to be trained. Its quantizer is a GpuIndexBitsFlat.
    ///
    /// subQuantizers  M, parts of a vector
    /// bitsPerCode    of a part
    GpuIndexBitsIVFPQ(
            faiss::gpu::GpuResourcesProvider* provider,
            int dims,
            int nlist,
            int subQuantizers,
            int bitsPerCode,
            faiss::MetricType metric = faiss::METRIC_L2,
            faiss::gpu::GpuIndexIVFPQConfig config =
                    faiss::gpu::GpuIndexIVFPQConfig());

    /// The same with a quantizer of the caller's (not null), on the CPU or on
    /// the same GPU, which outlives the index.
    GpuIndexBitsIVFPQ(
            faiss::gpu::GpuResourcesProvider* provider,
            faiss::Index* coarseQuantizer,
            int dims,
            int nlist,
            int subQuantizers,
            int bitsPerCode,
            faiss::MetricType metric = faiss::METRIC_L2,
            faiss::gpu::GpuIndexIVFPQConfig config =
                    faiss::gpu::GpuIndexIVFPQConfig());

    /// Replaces quantizer, lists and nprobe by those of a CPU index. The new
    /// quantizer is a GpuIndexBitsFlat where theirs is an IndexFlat. The old
    /// ones stay until all is copied, so that there must be memory for both;
    /// if that fails they are kept.
    void copyFrom(const faiss::IndexIVFPQ* index);

    /// Makes a CPU index (not null) a copy of this one. Not with INDICES_IVF,
    /// which keeps no ids. FAISS's own copyTo, which its index_gpu_to_cpu
    /// calls, reads behind codes of 4, 5 and 6 bits in FAISS 1.7.3; this does
    /// not.
    void copyTo(faiss::IndexIVFPQ* index) const;

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
    /// > radius), for each of n queries: as GpuIndexBitsIVFFlat.
    ///
    /// x [n, d], on the host or on the index's device; result->nq must be n
    void range_search(
            idx_t n,
            const float* x,
            float radius,
            faiss::RangeSearchResult* result,
            const faiss::SearchParameters* params = nullptr) const override;

    /// The same with results that stay on the device, as GpuIndexBitsIVFFlat.
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

    /// The decoded vector of an id to out [d]: the one whose distances searches
    /// return, as FAISS's CPU index has it. Where more than one has the id, as
    /// below, that of the lowest list and place. Errors and cost as of
    /// GpuIndexBitsIVFFlat.
    void reconstruct(idx_t key, float* out) const override;

    /// Those of the ids i0 to i0 + n - 1 to out [n, d]; all must be there.
    void reconstruct_n(idx_t i0, idx_t n, float* out) const override;

    /// Those of keys [n] to out [n, d], each on the host or on the device. The
    /// key -1, "no neighbour", gives zeros.
    void reconstruct_batch(idx_t n, const idx_t* keys, float* out)
            const override;

    /// Lets go of all vectors. What was trained stays.
    void reset() override;

    /// Removes the vectors whose ids are selected, and returns how many: as
    /// GpuIndexBitsIVFFlat.
    size_t remove_ids(const faiss::IDSelector& sel) override;

    /// Replaces the vectors of ids [n] by x [n, d], encoded anew in the lists
    /// that are nearest to them: as GpuIndexBitsIVFFlat.
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

    GpuIndexBitsIVFPQ(
            faiss::gpu::GpuResourcesProvider* provider,
            std::unique_ptr<faiss::Index> ownQuantizer,
            int dims,
            int nlist,
            int subQuantizers,
            int bitsPerCode,
            faiss::MetricType metric,
            faiss::gpu::GpuIndexIVFPQConfig config);

    /// As searches see it.
    detail::IvfIndex ivfIndex_() const;
};

} // namespace faiss_bits::gpu
