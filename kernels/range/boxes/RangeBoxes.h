#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/Workspace.h"
#include "kernels/range/RangeSink.h"

/// Range searches of vectors of few dimensions: those that lie near each other
/// are put together in boxes, which a search passes by or takes as a whole.
/// Exact, and the same bits as runFlatRange.
namespace faiss_bits {

/// Most dimensions of vectors in boxes.
constexpr int kMostBoxDims = 4;
/// Vectors of a box: a lane each.
constexpr int kBoxVectors = 32;
/// Boxes of a large box.
constexpr int kLargeBoxes = 32;

/// Ids of a chunk: blocks have a bit for each in shared memory.
constexpr uint32_t kMostChunkIds = 1 << 18;

/// Which vectors, and how they are to be kept.
struct RangeBoxesShape {
    Metric metric = Metric::L2; ///< L2, L1 or Linf
    int d = 0;                  ///< 1 to kMostBoxDims
    idx_t n = 0;                ///< below 2^31
    /// Consecutive ids that have boxes of their own: most of them. A multiple
    /// of 32,768, up to kMostChunkIds.
    idx_t chunkIds = kMostChunkIds;
};

/// True for a metric, number of vectors and of dimensions that boxes know.
bool canHaveBoxes(const RangeBoxesShape& shape);

/// The boxes of some vectors, in memory that the caller keeps.
///
/// Ids are cut into chunks of consecutive ones. A chunk's vectors are sorted
/// along a Z-order curve; 32 of them are a box, 32 boxes a large one, 32 large
/// ones a huge one, each with the least and the greatest of every component. So
/// a search has its results chunk after chunk in the order of ids, and sorts
/// those of a chunk: a few by comparison, many by a bit for every id of it.
///
/// Vectors with NaN or infinities are in no box, as they are in no range.
struct RangeBoxes {
    RangeBoxesShape shape;       ///< what they are of
    const float* rows = nullptr; ///< [n, d] the vectors, in the order of ids
    int dims = 0;           ///< components that are kept: 3, or 4 for d = 4
    uint32_t chunkIds = 0;  ///< of every chunk but the last
    uint32_t numChunks = 0; ///< of them
    uint32_t numLarge = 0;  ///< large boxes, whole chunks of 32
    float* components = nullptr; ///< [boxes][dims][32], NaN where none is
    uint32_t* ids = nullptr;     ///< [boxes][32] within the chunk
    float* boxes = nullptr;      ///< [large][dims][least, greatest][32]
    uint32_t* full = nullptr;    ///< [large] a bit for every box that is full
    float* large = nullptr;      ///< [large / 32][dims][least, greatest][32]
    float* huge = nullptr;       ///< [large / 1024, rounded up][as large]
    float* extent = nullptr;     ///< [dims][least, greatest] of finite vectors

    /// Lays them out; without memory behind the slices it measures.
    RangeBoxes(
            const RangeBoxesShape& shape,
            const float* rows,
            WorkspaceSlices& slices);
};

/// Bytes that boxes keep: 17 a vector, 21 where d is 4, and some.
size_t rangeBoxesBytes(const RangeBoxesShape& shape);

/// Scratch of runRangeBoxes: about 25 bytes a vector. Asks the device.
size_t rangeBoxesScratchBytes(const RangeBoxesShape& shape);

/// Makes them.
///
/// Stream   enqueues
/// Errors   Error naming a bad argument, or a failed launch
/// Cost     a sort of n keys of 64 bits, and what is kept is written once
void runRangeBoxes(
        const RangeBoxes& boxes,
        Workspace scratch,
        cudaStream_t stream);

/// How a search goes: made once from its shape.
struct BoxRangePlan {
    idx_t rows = 0;        ///< queries at a time
    idx_t mostResults = 0; ///< of a part
    size_t sumsBytes = 0;  ///< that CUB takes for sums
    size_t sortBytes = 0;  ///< and for the order of queries
    size_t bytes = 0;      ///< of scratch
};

/// The plan whose scratch is at most maxBytes, or that with the least that
/// works; parts of results are at most three times that. Asks the device.
BoxRangePlan planBoxRange(
        const RangeBoxes& boxes,
        idx_t numQueries,
        size_t maxBytes);

/// Finds the vectors with distance < radius, and hands them to `sink`.
///
/// queries      [numQueries, d], on the device
/// allowedBits  as FlatKnnProblem's, or nullptr
/// Result       that of runFlatRange, bit for bit
/// Stream       waits for the device, once or more for every plan.rows queries
/// Errors       Error naming a bad argument, for a radius that is NaN, a failed
///              launch, and what `sink` throws
/// Cost         the boxes of a chunk that a range touches are looked into
///              twice, to count and to write; 12 bytes a result are written
///              once, to their places
void runBoxRange(
        const BoxRangePlan& plan,
        const RangeBoxes& boxes,
        idx_t numQueries,
        const float* queries,
        const uint32_t* allowedBits,
        float radius,
        int multiprocessors,
        Workspace workspace,
        cudaStream_t stream,
        RangeSink& sink);

} // namespace faiss_bits
