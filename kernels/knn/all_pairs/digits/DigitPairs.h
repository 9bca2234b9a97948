/// The matrix of canonical distances by products of digits: exact sums of
/// integers on tensor cores say most of them, and list which they do not.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/DeviceTraits.h"
#include "kernels/knn/all_pairs/digits/DigitImage.h"

namespace faiss_bits {

// Of a block: queries and vectors.
constexpr int kDigitQueries = 2 * DigitImageLayout::kTileRows;
constexpr int kDigitVectors = DigitImageLayout::kTileRows;
/// Components of a product of two digits.
constexpr int kDigitStep = 32;

/// Pairs whose distances the products do not say, and tiles of 64 queries and
/// as many vectors that have too many of them: tiles are numbered queries
/// first.
struct UnsurePairList {
    uint32_t* counts = nullptr; // [2]: of pairs, also those without room; tiles
    uint32_t* marks = nullptr;  // [tiles] of those in the list, else 0
    uint2* pairs = nullptr;     // [capacity]: query, vector
    uint32_t capacity = 0;
    uint32_t* tiles = nullptr; // [tiles]
};

/// Whether the distance of a pair that the products do not say is NaN until it
/// is computed.
template <Metric kMetric>
constexpr bool kMarksUnsure = kMetric == Metric::L2;

/// Of a launch: queries, vectors, and where their distances go.
struct DigitPairsParams {
    CertifiedParams search;
    DigitImage queries;
    DigitImage vectors;
    int slabs = 0;
    int digits = 0;
    float* distances = nullptr; // [rows, stride]
    int64_t stride = 0;         // even
    UnsurePairList unsure;
};

/// Whether this build and the device have the kernel.
bool hasDigitPairs(const DeviceTraits& device);

/// Enqueues one kernel. In builds that hasDigitPairs().
template <Metric kMetric>
void launchDigitPairs(
        const DigitPairsParams& params,
        int multiprocessors,
        cudaStream_t stream);

/// Enqueues the canonical distances of the pairs that are listed. Those of
/// tiles that are listed: launchAllPairs().
template <Metric kMetric>
void launchUnsurePairs(
        const DigitPairsParams& params,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits
