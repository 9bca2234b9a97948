#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/certified/CertifiedParams.h"

namespace faiss_bits {

/// The rows of a tile, cut into items: of row r the i-th is number
/// r * perRow + i.
struct RangeItems {
    uint32_t rows = 0;
    uint32_t perRow = 1;
    uint32_t itemWords = 32; // of 32 vectors each; 1024 at most
    uint64_t words = 0;      // of a row
};

constexpr uint32_t kMostItemWords = 1024;

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

/// Canonical distances of the candidates of some items, side by side: of those
/// in range, in order, from the place of the item's first candidate on.
struct RangeScoreParams {
    CertifiedParams search;
    RangeCandidates candidates;
    const int64_t* offsets = nullptr; // [items + 1]: of the candidates of all
    int64_t firstItem = 0;            // items are whole rows, or of one row
    int64_t numItems = 0;
    float radius = 0;
    float* distances = nullptr;  // [candidates of these items]
    uint32_t* columns = nullptr; // the same
    int64_t* kept = nullptr;     // [numItems]: those in range
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

/// From what scores kept to results.
struct RangeCopyParams {
    const int64_t* offsets = nullptr; // as the scores have them
    int64_t firstItem = 0;
    int64_t numItems = 0;
    const float* distances = nullptr;
    const uint32_t* columns = nullptr;
    const int64_t* places = nullptr; // [numItems + 1]: sums of `kept`
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

/// counts [items]: candidates of each.
void launchRangeCounts(
        const RangeCandidates& candidates,
        int64_t* counts,
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

/// bounds[i] = sums[min(i * step, count)], for i = 0 .. rows.
void launchRangeBounds(
        const int64_t* sums,
        int64_t count,
        uint32_t step,
        uint32_t rows,
        int64_t* bounds,
        cudaStream_t stream);

void launchRangeCopy(
        const RangeCopyParams& params,
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
