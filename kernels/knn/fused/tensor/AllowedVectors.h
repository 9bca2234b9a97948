#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Workspace.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/fused/ByteSearch.h"
#include "kernels/knn/fused/tensor/SearchImage.h"

namespace faiss_bits {

/// What a scan on tensor cores makes of an image for its filter: a copy of the
/// vectors of a list, in 16 bits and in 8, and what makes strips of the second
/// sample leave out what is not allowed: other norms, or for inner products, in
/// whose scans there are none, other components. Without a filter it has
/// nothing.
class AllowedVectors {
   public:
    /// Takes its memory. ofStrips: limits come from strips of the second
    /// sample. Problem and image must outlive it.
    AllowedVectors(
            const FlatKnnProblem& problem,
            const SearchImage& image,
            bool ofStrips,
            WorkspaceSlices& slices);

    /// Enqueues what strips need, once, when the image is there.
    void begin(cudaStream_t stream) const;

    /// Of which strips are.
    TensorImage secondSample() const;

    /// Whether the copy is what is scanned: scansList().
    bool isListed() const {
        return listed_;
    }

    /// Sets what a search in 8 bits has to know of the filter.
    void describe(ByteSearch& bytes) const;

    /// Enqueues the copy for a scan of so many queries, whose limits are made,
    /// in 8 bits or in 16 as their costs say, unless an earlier call has made
    /// it. The costs of all tiles say the same then.
    void copyListed(
            const ByteSearch& bytes,
            idx_t queries,
            cudaStream_t stream);

    TensorImage listed() const;
    ByteImage listedBytes() const;

   private:
    const FlatKnnProblem& problem_;
    const SearchImage& image_;
    // Of the second sample.
    float* norms_ = nullptr;
    uint16_t* normSteps_ = nullptr;
    void* pieces_ = nullptr;
    uint32_t* members_ = nullptr; // [1] how many are allowed
    void* listed_ = nullptr;
    void* listedBytes_ = nullptr;
    uint32_t* made_ = nullptr; // [2] ListedImages::made
    unsigned copies_ = 0;      // calls
};

} // namespace faiss_bits
