#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Workspace.h"
#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/fused/tensor/ByteImage.h"
#include "kernels/knn/fused/tensor/SpreadRows.h"
#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

/// What searches on tensor cores make of the vectors, of normalised ones for
/// cosine: a copy of 16 bits, a sample, and the center that was subtracted from
/// both. Made for one search, or kept for many (FlatKnnProblem::searchImage).
struct SearchImage {
    TensorImage image;
    /// Which vectors the image's rows are (FlatKnnProblem::imageInOrder).
    SpreadRows rows;
    void* sample = nullptr;       // [samples, d], bfloat16
    float* sampleNorms = nullptr; // [samples] squared: L2 and cosine
    float* center = nullptr;      // [d]
    uint32_t samples = 0;
    // Another, larger one: a part of the image.
    TensorImage second;
    int32_t* secondIds = nullptr; // [secondSamples]
    idx_t secondSamples = 0;
    ByteImage bytes; // of the image: hasByteImage()

    /// Takes its memory, for a problem's metric, n and d, and the order of its
    /// image.
    SearchImage(const FlatKnnProblem& problem, WorkspaceSlices& slices);

   private:
    friend void runSearchImage(
            const FlatKnnProblem&,
            const SearchImage&,
            cudaStream_t);
    float* wide_ = nullptr; // [samples, d]: the sample in float32
    float* scratch_ = nullptr;
};

/// Vectors of a second sample of n: one in 16, or none where there are few.
idx_t secondSamplesOf(idx_t n);

/// Whether the problem's image has one of 8 bits beside it: imageHasBytes, and
/// vectors of 65 to 1,024 dimensions, by L2, in the order that k-NN searches
/// want, on Hopper; and so many that limits come from strips of the second
/// sample, which say how many more pass.
bool hasByteImage(const FlatKnnProblem& problem);

/// Whether a search that takes its limits from strips of the second sample has
/// a scan in 8 bits: where the caller has none, there are not few queries, and
/// no list of a small part of the vectors is scanned.
bool takesBytes(const FlatKnnProblem& problem);

/// What more passes in 8 bits than in 16 has to be appended and read: one of so
/// many vectors takes some 60% of what the scan saves, which grows with d
/// (docs/design/flat_tensor_cores.md). d from kLeastByteComponents on.
inline idx_t byteVectorsOfOne(int d) {
    constexpr idx_t kLeast = 2048;
    const idx_t ofSaved = 280000 / (d - 48);
    return ofSaved > kLeast ? ofSaved : kLeast;
}
static_assert(kLeastByteComponents > 48);

/// Of uniform data so many pass beside, of what passes in 16 bits: 0.3 to 0.6
/// at d = 128, and more of longer vectors.
constexpr double kByteShare = 0.4;

/// Bytes of a SearchImage: about n (2.1 d + 38), d rounded up to 16; with an
/// image of 8 bits n (d + 4) more, d rounded up to 128.
size_t searchImageBytes(const FlatKnnProblem& problem);

/// Enqueues the making of an image of the problem's vectors; cosine: with its
/// vectorFacts.
/// Cost   two reads of the vectors; cosine: one
void runSearchImage(
        const FlatKnnProblem& problem,
        const SearchImage& image,
        cudaStream_t stream);

} // namespace faiss_bits
