#pragma once

#include <cuda_runtime_api.h>

#include "kernels/range/boxes/RangeBoxes.h"

/// What the kernels of a search through boxes share. Not part of the API.
///
/// A unit is a query and a chunk: unit = query * numChunks + chunk. Units are
/// visited chunk after chunk, queries that are near each other side by side.
namespace faiss_bits {

/// Results of a unit up to which one warp may have it: of 16 warps, in the
/// 99 KiB of shared memory that a block has on every GPU from 8.0 on.
constexpr uint32_t kMostFewResults = 448;
/// And up to which it always has.
constexpr uint32_t kLeastFewResults = 32;

struct BoxSearch {
    RangeBoxes boxes;
    const float* queries = nullptr;        // [rows, d]
    const uint32_t* allowedBits = nullptr; // or all
    float limit = 0;                       // the greatest distance in range
    uint32_t rows = 0;
    const uint32_t* order = nullptr; // [rows] queries; nullptr: as they are
    uint32_t* counts = nullptr;      // [units]
    int64_t* offsets = nullptr;      // [units + 1]
    /// [units] those with few results from the front, many from the back
    uint32_t* units = nullptr;
    uint32_t* listed = nullptr; // [2] how many of both
    uint32_t fewResults = 0;    // few: at most so many
    // Of a part: units first to last - 1, and where their results go.
    uint32_t firstUnit = 0;
    uint32_t lastUnit = 0;
    float* distances = nullptr;
    idx_t* ids = nullptr;
};

/// Bits of the Morton numbers of queries: for more cells than there are queries
/// near each other, and few passes to sort them.
constexpr int kBoxQueryBits = 16;

/// Morton numbers of the queries, and their numbers.
void launchBoxQueryKeys(
        const BoxSearch& search,
        uint32_t* keys,
        uint32_t* numbers,
        cudaStream_t stream);

/// counts. `warps` of them for a unit: 1 or 8.
void launchBoxCounts(
        const BoxSearch& search,
        int warps,
        int multiprocessors,
        cudaStream_t stream);

/// out[i] = offsets[i * numChunks], i in 0 .. rows.
void launchBoxBounds(
        const BoxSearch& search,
        int64_t* out,
        cudaStream_t stream);

/// units and listed, of a part.
void launchBoxUnits(const BoxSearch& search, cudaStream_t stream);

/// Results of the units with few of them.
void launchFewBoxResults(
        const BoxSearch& search,
        int multiprocessors,
        cudaStream_t stream);

/// Of those with many.
void launchManyBoxResults(
        const BoxSearch& search,
        int multiprocessors,
        cudaStream_t stream);

} // namespace faiss_bits
