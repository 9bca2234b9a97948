/// All that a scan of few vectors does for its queries, in one kernel: their
/// images, the limits, and the bits of what passes. Each pair is multiplied
/// once, and its key stays in registers as 16 bits until the limit is known: in
/// those of one block, or of a cluster of blocks, which want the images made.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/common/Types.h"
#include "kernels/knn/fused/tensor/TensorImage.h"

namespace faiss_bits {

struct PassAtOnceProblem {
    const float* queries = nullptr; ///< [numQueries, d] row-major
    idx_t numQueries = 0;
    idx_t numVectors = 0;
    int d = 0;
    const float* center = nullptr; ///< [d] that of the image, or nullptr
    TensorImage vectors;           ///< by L2
    /// Of the queries, with queryNorms and queryResiduals, which are then read:
    /// for more than kMostVectorsOfBlock vectors. Of fewer the kernel makes it.
    TensorImage queryImage;
    uint32_t rank = 0; ///< of the strip's key that the limit is made of

    // Results.
    float* queryNorms = nullptr;     ///< [numQueries] less the center, squared
    float* queryResiduals = nullptr; ///< [numQueries] TensorImage::residuals
    /// [numQueries] a key in whose reach all vectors have passed; infinity: all
    /// have; NaN: the query has no neighbours.
    float* complete = nullptr;
    /// [numQueries, words] what passed: rows of the image. All are written.
    uint32_t* bits = nullptr;
    uint32_t words = 0; ///< numVectors / 32, rounded up
};

/// Strips of each query: of eight vectors where one block has most, of 32 where
/// a cluster has.
constexpr uint32_t kStripsAtOnce = 128;
/// Of fewer vectors, of which 256 are strips of their own, twice as many let 7%
/// less pass for k = 32. To find the limit among them takes longer, by more
/// than that where k is small.
constexpr uint32_t kMoreStripsAtOnce = 256;
constexpr idx_t kMostVectorsOfMoreStrips = 512;
constexpr uint32_t kLeastRankOfMoreStrips = 16;
constexpr uint32_t stripsAtOnce(idx_t numVectors, uint32_t rank) {
    return numVectors <= kMostVectorsOfMoreStrips &&
                    rank >= kLeastRankOfMoreStrips
            ? kMoreStripsAtOnce
            : kStripsAtOnce;
}
/// Vectors whose keys of 64 queries two warpgroups hold; and the blocks of a
/// cluster.
constexpr idx_t kMostVectorsOfBlock = 1024;
constexpr idx_t kMostVectorsAtOnce = 4096;

/// Whether there is such a kernel, in builds with TensorScanKernel::Wgmma, for
/// these vectors by L2, and the rank: up to half of the strips, 33 to 128
/// components, compute capability 9.0.
inline bool canPassAtOnce(
        idx_t numVectors,
        int d,
        uint32_t rank,
        const DeviceTraits& device) {
    return device.computeCapability == 90 && numVectors >= 1 &&
            numVectors <= kMostVectorsAtOnce && d > 32 && d <= 128 &&
            rank >= 1 && 2 * rank <= kStripsAtOnce;
}

/// Finds what passes.
///
/// Passes   what has not key > limit, in float32 rounded to float16, where the
///          key is that of runTensorScan; the limit is that of the rank'th of
///          the least keys of strips (StripLimits.h)
/// Stream   enqueues one kernel, never waits; safe under graph capture
/// Errors   throws Error for a bad argument or a failed launch
/// Cost     one read of the queries, 2 numQueries numVectors d operations of
///          float16 tensor cores with d rounded up to 64, and for 64 queries
///          one read of half of the images from L2 where they have more than
///          640 rows of 128; of more than kMostVectorsOfBlock vectors one read
///          of the queries' image for each block of a cluster
void runPassAtOnce(
        const PassAtOnceProblem& problem,
        const DeviceTraits& device,
        cudaStream_t stream);

} // namespace faiss_bits
