#pragma once

#include <memory>
#include <vector>

#include <faiss/Index.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/gpu/StandardGpuResources.h>

#include "faiss_bits/many/DeviceList.h"

namespace faiss_bits::bench {

/// FAISS's IndexShards or IndexReplicas, and the parts of its own.
struct FaissMany {
    std::vector<std::unique_ptr<faiss::Index>> owned;
    std::unique_ptr<faiss::Index> index; ///< goes before the parts
};

/// Over the parts of a GpuIndexBitsShards or GpuIndexBitsReplicas: the same
/// searches, FAISS's merge. `ours` stays the owner.
FaissMany faissOverParts(const faiss::Index& ours);

/// What one device would have to do in the time of all: all vectors and its
/// part of the queries for replicas, its part of the vectors for shards.
struct DeviceShare {
    const faiss::Index* part = nullptr; ///< the first one
    bool ofQueries = false;
};
DeviceShare deviceShareOf(const faiss::Index& ours);

/// Over GpuIndexFlat on these devices: n vectors [n, d] on the host, split or
/// copied.
FaissMany faissOverFlat(
        bool split,
        const gpu::DeviceList& places,
        const std::vector<std::unique_ptr<faiss::gpu::StandardGpuResources>>&
                resources,
        int d,
        const float* vectors,
        int64_t n);

/// FAISS's index_cpu_to_gpu_multiple: GpuIndexIVFFlat on these devices, with
/// the index's nprobe; one device: one alone.
FaissMany faissOverLists(
        bool split,
        const gpu::DeviceList& places,
        const std::vector<std::unique_ptr<faiss::gpu::StandardGpuResources>>&
                resources,
        const faiss::IndexIVFFlat& index);

} // namespace faiss_bits::bench
