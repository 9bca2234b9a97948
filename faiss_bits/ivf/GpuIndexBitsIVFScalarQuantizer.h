#pragma once

#include <cstdint> // FAISS 1.7.3 has it from nobody under GCC 13

#include <faiss/gpu/GpuIndexIVFScalarQuantizer.h>

#include "faiss_bits/ivf/GpuIndexBitsIVF.h"
#include "faiss_bits/ivf/SearchParametersBitsIVF.h"

namespace faiss_bits::gpu {

/// Inverted lists of scalar codes on one GPU:
/// faiss::gpu::GpuIndexIVFScalarQuantizer with its search replaced. Lists,
/// training, adding and copying are FAISS's, and it can stand wherever FAISS
/// takes a GpuIndexIVFScalarQuantizer, index_gpu_to_cpu included.
///
/// Metrics  as of GpuIndexBitsIVFFlat
/// Types    QT_8bit, QT_8bit_uniform, QT_8bit_direct, QT_4bit, QT_4bit_uniform,
///          QT_6bit and QT_fp16: those of FAISS's GPU. QT_6bit needs
///          config.interleavedLayout, the default
/// Distance the canonical one of the decoded vector: in float64 by a formula
///          that is written down, rounded once. docs/exact.md
/// Decoding as FAISS's GPU decodes: fma(code, step, least + 0.5 * step) in
///          float32, where step is the range times float32(1 / (2^bits - 1)),
///          for QT_4bit the range divided by 15; a float16 number; or the code
///          (QT_8bit_direct). With by_residual the list's centroid is added to
///          that, rounded to float32. FAISS's CPU rounds at other places, so
///          that its reconstruct may differ in the last bits
/// Result   of the decoded vectors in the nprobe lists whose centroids are
///          nearest, as of GpuIndexBitsIVFFlat: best first, equal distances:
///          lower id first, same bits whatever the batch
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
/// With by_residual the quantizer needs centroids of float32 or float16, and
/// updateQuantizer() is called after they change, as FAISS has it.
///
/// copyFrom, setNumProbes and search_preassigned are not virtual in every
/// FAISS: called through a pointer to the base class they are FAISS's own, with
/// its limits.
class GpuIndexBitsIVFScalarQuantizer
        : public GpuIndexBitsIVF<faiss::gpu::GpuIndexIVFScalarQuantizer> {
   public:
    /// Copies a CPU index (not null) to the GPU, with its quantizer.
    GpuIndexBitsIVFScalarQuantizer(
            faiss::gpu::GpuResourcesProvider* provider,
            const faiss::IndexIVFScalarQuantizer* index,
            faiss::gpu::GpuIndexIVFScalarQuantizerConfig config =
                    faiss::gpu::GpuIndexIVFScalarQuantizerConfig());

    /// An empty index for vectors of dims >= 1 dimensions in nlist >= 1 lists,
    /// to be trained. Its quantizer is a GpuIndexBitsFlat.
    ///
    /// encodeResidual  by_residual: codes are of the vector less its list's
    ///                 centroid
    GpuIndexBitsIVFScalarQuantizer(
            faiss::gpu::GpuResourcesProvider* provider,
            int dims,
            int nlist,
            faiss::ScalarQuantizer::QuantizerType qtype,
            faiss::MetricType metric = faiss::METRIC_L2,
            bool encodeResidual = true,
            faiss::gpu::GpuIndexIVFScalarQuantizerConfig config =
                    faiss::gpu::GpuIndexIVFScalarQuantizerConfig());

    /// The same with a quantizer of the caller's (not null), on the CPU or on
    /// the same GPU, which outlives the index.
    GpuIndexBitsIVFScalarQuantizer(
            faiss::gpu::GpuResourcesProvider* provider,
            faiss::Index* coarseQuantizer,
            int dims,
            int nlist,
            faiss::ScalarQuantizer::QuantizerType qtype,
            faiss::MetricType metric = faiss::METRIC_L2,
            bool encodeResidual = true,
            faiss::gpu::GpuIndexIVFScalarQuantizerConfig config =
                    faiss::gpu::GpuIndexIVFScalarQuantizerConfig());

    /// Replaces quantizer, lists and nprobe by those of a CPU index. The new
    /// quantizer is a GpuIndexBitsFlat where theirs is an IndexFlat. The old
    /// ones stay until all is copied, so that there must be memory for both;
    /// if that fails they are kept.
    void copyFrom(const faiss::IndexIVFScalarQuantizer* index);

   private:
    IvfLists ivfLists_() const override;
};

} // namespace faiss_bits::gpu
