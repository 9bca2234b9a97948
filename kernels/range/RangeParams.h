#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/certified/CertifiedParams.h"

#if defined(__CUDACC__)
#define RANGE_BOTH __host__ __device__
#else
#define RANGE_BOTH
#endif

namespace faiss_bits {

/// The rows of a tile, cut into items: of row r the i-th is number
/// r * perRow + i. There are fewer than 2^32.
struct RangeItems {
    uint32_t rows = 0;
    uint32_t perRow = 1;
    uint32_t itemWords = 32; // of 32 vectors each; 256 at most
    uint64_t words = 0;      // of a row
};

/// More make a tail of the few items that most candidates are in.
constexpr uint32_t kMostItemWords = 256;
/// Words that are read together, of which an item has 32 at most.
constexpr uint32_t kSectorWords = 8;
static_assert(kMostItemWords <= 32 * kSectorWords);

/// What may be in range: bits of a tile's rows.
struct RangeCandidates {
    RangeItems items;
    int64_t n = 0;                         // vectors
    const uint32_t* bits = nullptr;        // [rows, words]; nullptr: all
    const uint32_t* allowedBits = nullptr; // [words]; nullptr: all
    /// [rows] of the scan: minus infinity for rows without results. nullptr:
    /// there are none.
    const float* limits = nullptr;
};

struct RangeLimitParams {
    CertifiedParams search; // rows, queries and what images have of them
    float radius = 0;
    float* limits = nullptr; // [rows]
};

/// Items whose candidates are in memory together: all items of some rows, or
/// some of one row. Their candidates lie by items of the same vectors: the j-th
/// item is that of the row j % rows.
struct RangeBatch {
    int64_t firstItem = 0;
    int64_t numItems = 0;
    uint32_t rows = 1;
    uint32_t perRow = 1; // numItems / rows

    /// The number that the j-th has in the tile, less firstItem.
    RANGE_BOTH int64_t itemAt(int64_t j) const {
        return int64_t(uint32_t(j) % rows) * perRow + uint32_t(j) / rows;
    }
};

/// From the bits of a batch to its candidates, and to those of them in range.
struct RangeListParams {
    RangeCandidates candidates;
    RangeBatch batch;
    const int64_t* counts = nullptr; // of the tile's items
    /// Of the tile's items: bit i is set where its i-th sector has bits.
    const uint32_t* sectors = nullptr;
    /// Candidates that there is room for; with more of them nothing is done.
    int64_t most = 0;
    int64_t* inOrder = nullptr;       // [numItems]: those of the j-th ones
    const int64_t* offsets = nullptr; // [numItems + 1]: sums of these
    /// The number of its row for every candidate, as bits of a float; then its
    /// distance, or NaN.
    float* distances = nullptr;
    uint32_t* columns = nullptr; // of every candidate
    /// [numItems], by the numbers of the items: those in range.
    int64_t* kept = nullptr;
    uint32_t* next = nullptr;        // as RangeScoreParams: becomes zero
    const int64_t* places = nullptr; // [numItems + 1]: sums of `kept`
    float* outDistances = nullptr;   // [results]
    int64_t* outIds = nullptr;
};

/// Candidates to canonical distances; NaN where these are not in range.
struct RangeScoreParams {
    CertifiedParams search;
    const int64_t* total = nullptr; // candidates, on the device
    int64_t most = 0;               // with more nothing is done; below 2^31
    uint32_t* next = nullptr;       // the first that no warp has taken; zero
    float radius = 0;
    float* distances = nullptr; // in: as RangeListParams
    const uint32_t* columns = nullptr;
};

/// The matrix of canonical distances of some rows.
struct RangeMatrixParams {
    RangeItems items;
    int64_t n = 0;
    const uint32_t* allowedBits = nullptr;
    const float* matrix = nullptr; // [rows, stride]
    int64_t stride = 0;
    float radius = 0;
    bool largest = false;
    int64_t* kept = nullptr;         // [items]
    const int64_t* places = nullptr; // [items + 1]: sums of `kept`
    float* outDistances = nullptr;   // [results]
    int64_t* outIds = nullptr;
};

/// Limits of a scan, such that all in range passes. A query that is not a
/// number, or a radius that nothing is within: minus infinity.
template <Metric kMetric>
void launchRangeLimits(const RangeLimitParams& params, cudaStream_t stream);

template <Metric kMetric>
void launchRangeScores(
        const RangeScoreParams& params,
        int multiprocessors,
        cudaStream_t stream);

/// counts [items]: candidates of each; sectors [items] as RangeListParams.
void launchRangeCounts(
        const RangeCandidates& candidates,
        int64_t* counts,
        uint32_t* sectors,
        int multiprocessors,
        cudaStream_t stream);

/// sums[i] = counts[0] + .. + counts[i - 1], for i up to `count`; what counts
/// holds behind its last is not read as a number, but counts[count] must exist.
void launchRangeSums(
        int64_t* counts,
        int64_t count,
        int64_t* sums,
        void* scratch,
        size_t scratchBytes,
        cudaStream_t stream);
/// Bytes of its scratch for up to so many. No CUDA call that needs a device.
size_t rangeSumsBytes(int64_t count);

/// bounds[i] = sums[min(i * step, count)], for i = 0 .. rows, and behind them
/// *last.
void launchRangeBounds(
        const int64_t* sums,
        int64_t count,
        uint32_t step,
        uint32_t rows,
        const int64_t* last,
        int64_t* bounds,
        cudaStream_t stream);

/// inOrder of a batch, and `next`.
void launchRangeOrder(
        const RangeListParams& params,
        int multiprocessors,
        cudaStream_t stream);
/// Rows and columns of its candidates.
void launchRangeLists(
        const RangeListParams& params,
        int multiprocessors,
        cudaStream_t stream);
/// What is left of them: kept.
void launchRangeKept(
        const RangeListParams& params,
        int multiprocessors,
        cudaStream_t stream);
void launchRangeResults(
        const RangeListParams& params,
        int multiprocessors,
        cudaStream_t stream);

void launchRangeMatrixCounts(
        const RangeMatrixParams& params,
        int multiprocessors,
        cudaStream_t stream);
void launchRangeMatrixResults(
        const RangeMatrixParams& params,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits

#undef RANGE_BOTH
