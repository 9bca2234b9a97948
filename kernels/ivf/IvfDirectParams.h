#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/canonical/Distance.h"
#include "kernels/common/DeviceTraits.h"
#include "kernels/common/Types.h"
#include "kernels/ivf/IvfParams.h"

namespace faiss_bits {

// What the kernels take at most: what they have in shared memory.
constexpr int kMostDirectDims = 4096;
constexpr int kMostDirectProbes = 1024;
/// The same, where queries share what is read.
constexpr int kMostSharedDims = 1024;
/// Of searches that find their lists themselves.
constexpr int kMostFoundProbes = 256;
constexpr idx_t kMostFoundLists = 4096;
/// Pairs of a query and a list that one block sorts by list.
constexpr uint32_t kMostSortedPairs = 4096;
constexpr idx_t kMostSortedLists = 4096;
constexpr bool sortsPairsInOneBlock(idx_t pairs, idx_t numLists) {
    return pairs <= kMostSortedPairs && numLists <= kMostSortedLists;
}
/// Neighbours that the finish finds.
constexpr int kMostFinishedK = 128;

/// Threads of a block of the scans: a warp for each slot of the sums.
constexpr int kIvfDirectThreads = 256;
/// Blocks that a multiprocessor takes at a time.
constexpr int kIvfDirectBlocks = 4;
/// Components of a slot that a lane has on their way at a time.
constexpr int kIvfDirectAhead = 16;
/// Components of a vector that are added up at a time.
constexpr int kIvfDirectDims = kIvfDirectAhead * canonical::kSlots;
/// Queries that share what is read of a list, and its vectors, of a tile.
constexpr int kIvfSharedQueries = 4;
constexpr int kIvfSharedVectors = 256;
/// The same of codes that come through shared memory, and blocks of a
/// multiprocessor: a lane has the sums of four vectors.
constexpr int kIvfFoursVectors = 128;
constexpr int kIvfFoursBlocks = 3;

/// Of vectors of few dimensions a lane has a vector alone, and more queries
/// share what is read: a step that a block takes together would take more time
/// than its sums. Of a query by itself float32 vectors alone.
constexpr int kMostDimsAlone = 32;
constexpr int kIvfAloneQueries = 16;
BITS_HOST_DEVICE constexpr bool areVectorsAlone(const IvfLists& lists) {
    return lists.coding == ListCoding::Float32 && lists.d <= kMostDimsAlone;
}
constexpr bool areSharedAlone(const IvfLists& lists) {
    return lists.coding != ListCoding::Product && lists.d <= kMostDimsAlone;
}

/// Components of a query in shared memory, with zeros behind: whole steps.
BITS_HOST_DEVICE constexpr int ivfDirectPadded(int d) {
    return (d + kIvfDirectDims - 1) / kIvfDirectDims * kIvfDirectDims;
}

/// A direct search: the keys of all vectors of the lists of some queries, of
/// which the finish takes the least; or the matrix of their distances. Columns
/// are those of IvfParams, with columnStep 32.
struct IvfDirectParams {
    IvfParams search;
    /// [numLists, d]: a query's lists are those of the nprobe nearest
    /// centroids, which are written to foundProbes; nullptr: search.probes has
    /// them
    const float* centroids = nullptr;
    uint32_t* centroidKeys = nullptr; ///< [rows, numLists], ordered (Entry.cuh)
    idx_t* foundProbes = nullptr;     ///< [rows, nprobe], as search.probes

    /// [rows, search.stride], ordered; nullptr: search.distances is written,
    /// NaN behind the last column
    uint32_t* keys = nullptr;
    uint32_t* least = nullptr; ///< [rows, search.stride / 32], of 32 keys each
    /// [rows, 2]: the bits of two floats that are not negative, how far keys
    /// may be from the canonical ones (IvfProductBound.h); launchIvfDirectLists
    /// makes them 0. nullptr: keys are canonical
    uint32_t* bounds = nullptr;
    /// Of product codes with bounds, on sixteen bytes: the codebook in float16,
    /// times a scale (ivfCodebookScale), and of its squares the sum over parts
    /// of the greatest of a row, then for each part the greatest of what a row
    /// loses, times the scale's; launchIvfDirectLists makes them
    uint16_t* codebook = nullptr;   ///< as IvfLists has it
    float* codebookNorms = nullptr; ///< [1 + parts]
    /// Of product codes whose bounds are those of tables (IvfTableBound.h): the
    /// codebook with its rows side by side, [parts, d / parts, 2^partBits], and
    /// of each part the greatest square of a row; launchIvfDirectLists makes
    /// them
    float* turnedCodebook = nullptr;
    float* turnedSquares = nullptr; ///< [parts]
    /// Where entries of these tables are sums of two terms, or nullptr: what
    /// each query adds, [rows, parts, 2^partBits], and for L2 what each probed
    /// list adds, [ivfListsOfTerms(), parts, 2^partBits]; launchIvfTableTerms
    /// makes them
    float* queryTerms = nullptr;
    float* listTerms = nullptr;

    /// Of queries that share lists: what a tile has of both, and where few
    /// pairs are sorted by launchIvfDirectLists, a counter that
    /// launchIvfCentroids or the caller set to 0; nullptr: launchIvfPairs sorts
    /// them.
    uint32_t tileQueries = 0;
    uint32_t tileVectors = 0;
    uint32_t* arrived = nullptr;

    bool largest = false;          ///< of the metric
    float* outDistances = nullptr; ///< [rows, k]
    idx_t* outIds = nullptr;       ///< [rows, k]
};

/// Keys of all centroids.
void launchIvfCentroids(
        const IvfDirectParams& params,
        Metric metric,
        cudaStream_t stream);

/// The columns of each query, its lists where there are centroids, starts and
/// steps: what launchIvfDirectScan finds itself. And what launchIvfPairs makes,
/// for tiles of tileQueries and tileVectors, where there is a counter.
///
/// makesCodebook  also codebook and codebookNorms, or turnedCodebook and
///                turnedSquares, where the scan wants them: once a search
void launchIvfDirectLists(
        const IvfDirectParams& params,
        bool makesCodebook,
        cudaStream_t stream);

/// Keys of the vectors of each query's lists, and the columns; after
/// launchIvfCentroids where there are centroids. Of rows, float32 and product
/// codes.
template <Metric kMetric, ListCoding kCoding>
void launchIvfDirectScan(
        const IvfDirectParams& params,
        int multiprocessors,
        cudaStream_t stream);

/// Keys alone, of tiles of kIvfSharedQueries (kIvfAloneQueries, where
/// areSharedAlone()) and kIvfSharedVectors; after launchIvfDirectLists and
/// launchIvfPairs. Of rows and float32, and of few dimensions, but not product
/// codes.
template <Metric kMetric, ListCoding kCoding>
void launchIvfSharedScan(
        const IvfDirectParams& params,
        int multiprocessors,
        cudaStream_t stream);

/// The same two of interleaved float16 and scalar codes, which come through
/// shared memory; launchIvfStagedSharedScan for tiles of kIvfSharedQueries and
/// kIvfFoursVectors.
template <Metric kMetric, ListCoding kCoding>
void launchIvfStagedScan(
        const IvfDirectParams& params,
        const DeviceTraits& device,
        cudaStream_t stream);
template <Metric kMetric, ListCoding kCoding>
void launchIvfStagedSharedScan(
        const IvfDirectParams& params,
        const DeviceTraits& device,
        cudaStream_t stream);

/// The k <= kMostFinishedK nearest of each query, of keys.
void launchIvfDirectFinish(const IvfDirectParams& params, cudaStream_t stream);

} // namespace faiss_bits
