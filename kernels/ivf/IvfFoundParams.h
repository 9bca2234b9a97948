#pragma once

#include "kernels/ivf/IvfParams.h"

namespace faiss_bits {

/// Which of the candidates of a range search are near enough, and their order:
/// that of the columns. Estimates find them in any order.
struct IvfFoundParams {
    IvfRescoreParams rescored; // of all that is found (takesAll)
    float radius = 0;
    bool largest = false; // greater ones are wanted
    /// By the row that has most, or more: launches alone read it.
    uint32_t mostFound = 0;

    uint32_t tableSlots = 0;       // a power of two, twice the probes or more
    uint32_t rowWords = 0;         // of 32 columns
    uint32_t* bits = nullptr;      // [rows, rowWords]: columns that are inside;
                                   // zeros before the counts
    uint32_t* before = nullptr;    // [rows, rowWords]: bits of the words before
    uint32_t* counts = nullptr;    // [rows]
    const idx_t* firsts = nullptr; // [rows]: of the results
    float* outDistances = nullptr;
    idx_t* outIds = nullptr;

    /// [rows, candidates]: that of a candidate which is inside, else
    /// kIvfNoColumn. Ranks are read no more when they are known.
    BITS_HOST_DEVICE uint32_t* columns() const {
        return rescored.ranks;
    }

    /// The number of a row's first candidate.
    BITS_HOST_DEVICE int64_t firstOf(uint32_t row) const {
        return rescored.search.firstFound
                ? int64_t(rescored.search.firstFound[row])
                : int64_t(row) * rescored.candidates;
    }
};

constexpr uint32_t kIvfNoColumn = ~0u;
/// A table of them takes 64 KiB of shared memory.
constexpr int kIvfMostTableProbes = 4096;

/// One limit for all rows: `nearest` and `nearestPlaces` for k = 1, [rows].
void launchIvfFoundLimits(
        float limit,
        uint32_t rows,
        float* nearest,
        int32_t* nearestPlaces,
        cudaStream_t stream);

/// What was found, row by row at row * room, side by side: that of a row from
/// firstFound[row] on, and for each its row, as IvfParams::firstFound has it.
void launchIvfFoundPacked(
        const IvfParams& search,
        const uint32_t* firstFound,
        float* rows,
        uint64_t* found,
        cudaStream_t stream);

/// After the distances of all candidates: columns, bits and counts.
void launchIvfFoundCounts(const IvfFoundParams& params, cudaStream_t stream);

/// After it: the results of each row from firsts on.
void launchIvfFoundResults(const IvfFoundParams& params, cudaStream_t stream);

} // namespace faiss_bits
