#pragma once

#include <cstdint> // FAISS 1.7.3 has it from nobody under GCC 13

#include <faiss/gpu/GpuIndexIVFPQ.h>

#include "faiss_bits/ivf/GpuIndexBitsIVF.h"
#include "faiss_bits/ivf/SearchParametersBitsIVF.h"

namespace faiss_bits::gpu {

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
class GpuIndexBitsIVFPQ : public GpuIndexBitsIVF<faiss::gpu::GpuIndexIVFPQ> {
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

   private:
    IvfLists ivfLists_() const override;
};

} // namespace faiss_bits::gpu
