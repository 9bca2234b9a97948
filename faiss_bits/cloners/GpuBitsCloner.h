#pragma once

#include <faiss/gpu/GpuCloner.h>

namespace faiss_bits::gpu {

/// FAISS's cloner from CPU to one GPU, with our flat indexes.
///
/// An IndexFlat of METRIC_L2 becomes a GpuIndexBitsFlatL2, one of
/// METRIC_INNER_PRODUCT a GpuIndexBitsFlatIP, one of another metric that we
/// have a GpuIndexBitsFlat (useFloat16 or useBFloat16 chooses the storage);
/// also where it is the inner index of an IndexIDMap or IndexPreTransform. An
/// IndexScalarQuantizer of float16 (QT_fp16) becomes the same with useFloat16,
/// in the same places; copied back it is an IndexFlat, as FAISS's is.
/// An IndexIVFFlat, IndexIVFScalarQuantizer or IndexIVFPQ of L2 or inner
/// product over an IndexFlat becomes a GpuIndexBitsIVFFlat,
/// GpuIndexBitsIVFScalarQuantizer or GpuIndexBitsIVFPQ; the codes of the last
/// may also be of those that FAISS has with interleavedLayout alone (fewer than
/// 8 bits from FAISS 1.15 on, since index_gpu_to_cpu fails on those of 1.7.3).
/// An IndexRefine or IndexRefineFlat stays one: its base index is copied as
/// above, the vectors that it refines with stay on the CPU, where it reads them
/// one by one. (FAISS 1.7.3 cannot copy it back by index_gpu_to_cpu.)
/// Other metrics and other index types go to FAISS's cloner.
struct BitsToGpuCloner : faiss::gpu::ToGpuCloner {
    using faiss::gpu::ToGpuCloner::ToGpuCloner;

    /// As GpuIndexBitsFlatConfig::useBFloat16. FAISS's cloner has no such
    /// storage: an index that it would have to clone is a FaissException.
    bool useBFloat16 = false;
    /// As GpuIndexBitsFlatConfig::keepSearchImage.
    bool keepSearchImage = true;

    /// A copy of one index; FAISS calls it for its parts too.
    faiss::Index* clone_Index(const faiss::Index* index) override;
};

/// Copies a CPU index to a GPU, as faiss::gpu::index_cpu_to_gpu, with
/// BitsToGpuCloner. faiss::gpu::index_gpu_to_cpu is the way back.
///
/// options      null: FAISS's defaults
/// useBFloat16  store the vectors of flat indexes as bfloat16, for which
///              FAISS's options have no field
/// Result       a new index, owned by the caller
/// Errors       FaissException: a null pointer, a device that does not exist,
///              an index that FAISS cannot clone, or that would have to be one
///              of FAISS's with useBFloat16, not enough memory
faiss::Index* index_cpu_to_gpu(
        faiss::gpu::GpuResourcesProvider* provider,
        int device,
        const faiss::Index* index,
        const faiss::gpu::GpuClonerOptions* options = nullptr,
        bool useBFloat16 = false);

} // namespace faiss_bits::gpu
