#pragma once

#include "faiss_bits/flat/GpuIndexBitsFlat.h"

/// Exact search on one GPU by L2 and by inner product, under the names of
/// FAISS's classes for them. GpuIndexBitsFlat.h includes this header.
namespace faiss_bits::gpu {

/// GpuIndexBitsFlat of METRIC_L2; distances are squared.
class GpuIndexBitsFlatL2 : public GpuIndexBitsFlat {
   public:
    /// Copies a CPU index (not null) to the GPU. O(ntotal * d) copied.
    GpuIndexBitsFlatL2(
            faiss::gpu::GpuResourcesProvider* provider,
            const faiss::IndexFlatL2* index,
            GpuIndexBitsFlatConfig config = GpuIndexBitsFlatConfig());

    /// The same with resources that are shared.
    GpuIndexBitsFlatL2(
            std::shared_ptr<faiss::gpu::GpuResources> resources,
            const faiss::IndexFlatL2* index,
            GpuIndexBitsFlatConfig config = GpuIndexBitsFlatConfig());

    /// An empty index for vectors of dims >= 1 dimensions.
    GpuIndexBitsFlatL2(
            faiss::gpu::GpuResourcesProvider* provider,
            int dims,
            GpuIndexBitsFlatConfig config = GpuIndexBitsFlatConfig());

    /// The same with resources that are shared.
    GpuIndexBitsFlatL2(
            std::shared_ptr<faiss::gpu::GpuResources> resources,
            int dims,
            GpuIndexBitsFlatConfig config = GpuIndexBitsFlatConfig());

    /// As GpuIndexBitsFlat; `index` must have METRIC_L2.
    void copyFrom(const faiss::IndexFlat* index);
    /// As GpuIndexBitsFlat.
    void copyTo(faiss::IndexFlat* index) const;
};

/// GpuIndexBitsFlat of METRIC_INNER_PRODUCT; the largest products come first.
class GpuIndexBitsFlatIP : public GpuIndexBitsFlat {
   public:
    /// Copies a CPU index (not null) to the GPU. O(ntotal * d) copied.
    GpuIndexBitsFlatIP(
            faiss::gpu::GpuResourcesProvider* provider,
            const faiss::IndexFlatIP* index,
            GpuIndexBitsFlatConfig config = GpuIndexBitsFlatConfig());

    /// The same with resources that are shared.
    GpuIndexBitsFlatIP(
            std::shared_ptr<faiss::gpu::GpuResources> resources,
            const faiss::IndexFlatIP* index,
            GpuIndexBitsFlatConfig config = GpuIndexBitsFlatConfig());

    /// An empty index for vectors of dims >= 1 dimensions.
    GpuIndexBitsFlatIP(
            faiss::gpu::GpuResourcesProvider* provider,
            int dims,
            GpuIndexBitsFlatConfig config = GpuIndexBitsFlatConfig());

    /// The same with resources that are shared.
    GpuIndexBitsFlatIP(
            std::shared_ptr<faiss::gpu::GpuResources> resources,
            int dims,
            GpuIndexBitsFlatConfig config = GpuIndexBitsFlatConfig());

    /// As GpuIndexBitsFlat; `index` must have METRIC_INNER_PRODUCT.
    void copyFrom(const faiss::IndexFlat* index);
    /// As GpuIndexBitsFlat.
    void copyTo(faiss::IndexFlat* index) const;
};

} // namespace faiss_bits::gpu
