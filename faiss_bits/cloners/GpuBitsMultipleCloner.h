#pragma once

#include <vector>

#include <faiss/clone_index.h>
#include <faiss/gpu/GpuClonerOptions.h>

#include "faiss_bits/many/DeviceList.h"

namespace faiss_bits::gpu {

/// A cloner from CPU to several GPUs, with our indexes.
///
/// An IndexFlat of a metric that we have becomes a GpuIndexBitsReplicas, or
/// with `shard` a GpuIndexBitsShards; so does an IndexIVFFlat,
/// IndexIVFScalarQuantizer or IndexIVFPQ that BitsToGpuCloner has a class for:
/// with `shard` each device gets a part of every list (shard_type 1: ids modulo
/// the number of devices; 2: ranges of ids; FAISS since 1.7.4 also 4: lists)
/// and all centroids, so that the shards probe the same lists and give the
/// results of one index. One that is not trained is trained there, and vectors
/// are added there, as to one index. An IndexIDMap or IndexPreTransform stays
/// one, of such an index. One device: as BitsToGpuCloner.
struct BitsToGpuClonerMultiple : faiss::Cloner {
    /// Errors  FaissException: no device
    BitsToGpuClonerMultiple(
            const DeviceList& devices,
            const faiss::gpu::GpuMultipleClonerOptions& options,
            const GpuIndexBitsManyConfig& config);

    /// A copy of one index; FAISS calls it for its parts too. Throws
    /// FaissException for an index that no class of ours takes the place of.
    faiss::Index* clone_Index(const faiss::Index* index) override;

    DeviceList devices;                           ///< of the parts, in order
    faiss::gpu::GpuMultipleClonerOptions options; ///< FAISS's
    GpuIndexBitsManyConfig config;                ///< what these lack
};

/// Copies a CPU index to several GPUs, as faiss::gpu::index_cpu_to_gpu_multiple
/// with BitsToGpuClonerMultiple.
///
/// options  null: FAISS's defaults, which copy to every device. shard: split;
///          shard_type as above. common_ivf_quantizer (since FAISS 1.7.4):
///          every device has the centroids and finds the lists by itself,
///          whatever it says; a quantizer that is not flat becomes flat
/// config   of the parts and the copies between them; useFloat16 of either
///          counts
/// Result   a new index, owned by the caller
/// Errors   FaissException: a null pointer, no device, an index of another
///          type, not enough memory
faiss::Index* index_cpu_to_gpu_multiple(
        const DeviceList& devices,
        const faiss::Index* index,
        const faiss::gpu::GpuMultipleClonerOptions* options = nullptr,
        const GpuIndexBitsManyConfig& config = GpuIndexBitsManyConfig());

} // namespace faiss_bits::gpu
