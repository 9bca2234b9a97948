#pragma once

#include <cstdint> // FAISS 1.7.3 has it from nobody under GCC 13

#include <faiss/gpu/GpuIndexIVFFlat.h>

#include "faiss_bits/ivf/GpuIndexBitsIVF.h"
#include "faiss_bits/ivf/SearchParametersBitsIVF.h"

namespace faiss_bits::gpu {

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
class GpuIndexBitsIVFFlat
        : public GpuIndexBitsIVF<faiss::gpu::GpuIndexIVFFlat> {
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

   private:
    IvfLists ivfLists_() const override;
};

} // namespace faiss_bits::gpu
