#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/canonical/Power.h"
#include "kernels/common/Types.h"
#include "kernels/ivf/IvfEstimateBound.h"
#include "kernels/ivf/IvfLists.h"

namespace faiss_bits {

// Of a tile, in queries and in vectors.
constexpr int kIvfTileQueries = 64;
constexpr int kIvfWideTile = 256;
// Of an item of estimates: what a block reads once.
constexpr int kIvfItemQueries = 512;
constexpr int kIvfEstimateVectors = 256;
constexpr int kIvfNarrowTile = 64;
/// Of estimates: lists begin on sixteen bytes.
constexpr int kIvfColumnStep = 4;
/// Vectors of a list that are scored together.
constexpr int kIvfGroup = 32;
/// Components of queries that lanes have together; rows are padded to it.
constexpr int kIvfArrangedStep = 128;
/// Rows of a search, so that one and a place in a group take 32 bits.
constexpr idx_t kIvfMostRows = idx_t(1) << 27;

/// What the kernels of an IVF search get: some queries ("rows"), the pairs of a
/// row and one of its lists, and a matrix of distances, or of upper bounds of
/// keys. The columns of a row are the vectors of its first list, then those of
/// its second and so on, of the first nearProbes ones, and NaN to the end; or
/// fours of them, each with the least upper bound of four vectors.
struct IvfParams {
    IvfLists lists;
    int d = 0;
    canonical::Power power; // not used: tiles of all metrics have it

    const float* queries = nullptr; // [rows, d]
    const idx_t* probes = nullptr;  // [rows, nprobe]
    uint32_t rows = 0;
    uint32_t nprobe = 0;
    uint32_t nearProbes = 0;

    uint32_t* columns = nullptr; // [rows, nearProbes + 1]: where lists begin,
                                 // and end
    uint32_t columnStep = 1;     // lists begin at multiples of it
    uint32_t boundVectors = 1;   // vectors of a column of the matrix: 1 or
                                 // columnStep
    /// Of each list no more than so many groups of 32 vectors have columns,
    /// evenly spread over it; a multiple of those of an item. 0: all.
    uint32_t sampleGroups = 0;
    float* distances = nullptr; // [rows, stride]
    int64_t stride = 0;

    // Of Scalar codings (ListDecoding), for kernels after launchIvfColumns.
    float* starts = nullptr; // [d]
    float* steps = nullptr;  // [d]

    // Pairs by list, of the first lastProbe probes.
    uint32_t lastProbe = 0;
    uint32_t* counts = nullptr;      // [numLists]
    uint32_t* firstPairs = nullptr;  // [numLists]: of the lists before
    uint32_t* firstTiles = nullptr;  // [numLists + 1]
    uint32_t* pairRanks = nullptr;   // [pairs], by row: among its list's
    uint32_t* pairRows = nullptr;    // [pairs]
    uint32_t* pairColumns = nullptr; // [pairs], of near probes

    // Of a search by estimates. The matrix has lower bounds of all lists; or
    // upper bounds of near lists, and then a scan of all takes what may be no
    // farther than the k-th of these.
    bool isLower = false;
    ivf_estimate::Factors bound;
    /// [numLists, d]: what estimates subtract from a list's vectors; nullptr:
    /// its first vector.
    const float* centers = nullptr;
    bool wholeParts = false;        // rows are read sixteen bytes at a time
    const float* nearest = nullptr; // [rows, k]
    const int32_t* nearestPlaces = nullptr; // [rows, k]; -1: there is none
    int k = 0;
    uint32_t room = 0; // for what a scan finds; 0: there is no scan
    // What is found takes the place of the matrix.
    float* foundKeys = nullptr;   // [rows, room]: lower bounds, then NaN
    uint64_t* found = nullptr;    // [rows, room]: list << 32 | vector
    uint32_t* numFound = nullptr; // [rows]; more than there is room for: lost
    /// [rows]: where that of a row begins in found, in place of row * room, and
    /// foundKeys has its row. nullptr: at row * room.
    const uint32_t* firstFound = nullptr;
    /// [rows], floats that are not negative: no key of the row is greater than
    /// its lower bound and this; infinite or NaN: not known.
    uint32_t* widths = nullptr;
};

/// Vectors of a list that have columns.
BITS_HOST_DEVICE uint32_t
vectorsOfColumns(const IvfParams& params, uint32_t length) {
    const uint32_t most = params.sampleGroups * kIvfGroup;
    return most > 0 && length > most ? most : length;
}

/// Where a group of 32 columns of a list lies in it.
BITS_HOST_DEVICE uint32_t
groupOfColumns(const IvfParams& params, uint32_t group, uint32_t length) {
    const uint32_t groups = (length + kIvfGroup - 1) / kIvfGroup;
    const uint32_t some = params.sampleGroups;
    return some > 0 && groups > some ? uint32_t(uint64_t(group) * groups / some)
                                     : group;
}

/// 32 vectors of a list of which some are candidates.
struct alignas(16) IvfGroup {
    const void* vectors; // of the list
    uint32_t list;
    uint32_t first; // vector of the list
    uint32_t last;  // end of the list
    uint32_t begin; // candidate of those in grouped
    uint32_t count;
    uint32_t unused;
};

/// A candidate among those of its group.
struct IvfCandidate {
    uint32_t number;      // row * candidates + number of the row
    uint32_t rowAndPlace; // row << 5 | vector of the group

    static_assert(kIvfGroup == 32);
};

// What numPlaced counts: candidates; groups that have few, and many.
constexpr int kIvfCandidatesPlaced = 0;
constexpr int kIvfFewPlaced = 1;
constexpr int kIvfManyPlaced = 2;
constexpr int kIvfPlaced = 3;

/// Canonical distances of the most promising of what a scan has found, or of
/// all.
struct IvfRescoreParams {
    IvfParams search;
    /// [rows, candidates + 1]: of what was found, or columns; -1: no more.
    const int32_t* chosen = nullptr;
    /// [rows, candidates + 1]: of these, ascending.
    const float* lowerBounds = nullptr;
    int candidates = 0;
    /// All that a scan has found, and no row found more than `candidates`;
    /// chosen and lowerBounds are not read. Arrays of candidates are as `found`
    /// where that has firstFound, numTaken in all.
    bool takesAll = false;
    uint32_t numTaken = 0;
    float* distances = nullptr; // [rows, candidates]; NaN: none
    uint64_t* places = nullptr; // [rows, candidates]: list << 32 | vector

    // Groups of 32 vectors of a list, and the candidates of each.
    uint32_t mostGroups = 0;         // no list, or lists together, have more
    uint32_t* firstGroups = nullptr; // [numLists + 1]
    uint32_t* groupCounts = nullptr; // [mostGroups]
    uint32_t* groupBegins = nullptr; // [mostGroups], in grouped
    uint32_t* ranks = nullptr;       // [rows, candidates]: among its group's
    uint32_t* numPlaced = nullptr;   // [kIvfPlaced]
    /// [mostGroups]: those with some candidates, no more than mostOfFew; at the
    /// end, and backwards, those with more.
    IvfGroup* groups = nullptr;
    uint32_t mostOfFew = 0;
    IvfCandidate* grouped = nullptr; // [rows * candidates], where the matrix
                                     // or what was found lay
    int stages = 0; // of 32 vectors in shared memory; 0: there is no room

    // Queries in the order of IvfQueryParts.cuh, zeros behind the last
    // component.
    float* arranged = nullptr; // [rows, arrangedDims]
    int arrangedDims = 0;      // a multiple of kIvfArrangedStep
};

/// What results are made of: a selection of k + 1 of each row of a matrix.
struct IvfResultParams {
    IvfParams search;
    const float* keys = nullptr;     // [rows, k + 1]
    const int32_t* places = nullptr; // [rows, k + 1]: columns, or -1
    bool largest = false;
    float* outDistances = nullptr; // [rows, k]
    idx_t* outIds = nullptr;       // [rows, k]

    /// After rescoring the matrix is that of the candidates; else that of the
    /// search.
    bool isRescored = false;
    IvfRescoreParams rescored;
    /// Rows that found more than there was room for, or of which something that
    /// was not chosen may be as near, have no result; they are listed here,
    /// counted from firstRow.
    uint32_t* lostRows = nullptr;
    uint32_t* numLost = nullptr;
    uint32_t firstRow = 0;
};

/// Rows of a search that are searched again, and where they come from.
struct IvfAgainParams {
    const uint32_t* rows = nullptr; // [count]
    uint32_t count = 0;
    int d = 0;
    int nprobe = 0;
    int k = 0;
    const float* queries = nullptr; // of all rows, as all below
    const idx_t* probes = nullptr;
    float* outDistances = nullptr;
    idx_t* outIds = nullptr;
    float* someQueries = nullptr; // of these rows, [count, ...]
    idx_t* someProbes = nullptr;
    float* someDistances = nullptr;
    idx_t* someIds = nullptr;
};

/// Columns of every row, NaN behind them; starts and steps.
void launchIvfColumns(const IvfParams& params, cudaStream_t stream);

/// After it: pairs by list, and tiles of so many queries and vectors.
void launchIvfPairs(
        const IvfParams& params,
        int tileQueries,
        int tileVectors,
        cudaStream_t stream);

/// The distances of near probes, in tiles of queries and vectors of a list.
template <Metric kMetric, ListCoding kCoding>
void launchIvfTiles(
        const IvfParams& params,
        bool wide,
        int multiprocessors,
        cudaStream_t stream);

/// Likewise bounds of keys, with columnStep 4; or, to append, what else may be
/// near enough. Tiles are of kIvfItemQueries and kIvfEstimateVectors.
template <Metric kMetric, ListCoding kCoding>
void launchIvfEstimates(
        const IvfParams& params,
        bool append,
        int multiprocessors,
        cudaStream_t stream);

/// The groups of 32 vectors of the lists before each: [numLists + 1].
void launchIvfGroups(
        const IvfLists& lists,
        uint32_t* firstGroups,
        cudaStream_t stream);

/// After it: candidates by group, and the queries as their distances need them.
void launchIvfCandidates(const IvfRescoreParams& params, cudaStream_t stream);

/// After it: canonical distances of candidates. sharedBytes: that a block may
/// take.
template <Metric kMetric, ListCoding kCoding>
void launchIvfRescore(
        IvfRescoreParams params,
        size_t sharedBytes,
        int multiprocessors,
        cudaStream_t stream);

/// The distances of near probes, every pair by itself. longestList: in vectors.
template <Metric kMetric, ListCoding kCoding>
void launchIvfStreams(
        const IvfParams& params,
        idx_t longestList,
        cudaStream_t stream);

/// Ids of what was selected; among equal distances the lowest ones, ascending.
void launchIvfResults(const IvfResultParams& params, cudaStream_t stream);

/// Queries and probes of some rows, side by side.
void launchIvfGather(const IvfAgainParams& params, cudaStream_t stream);

/// Their results, to where they belong.
void launchIvfScatter(const IvfAgainParams& params, cudaStream_t stream);

} // namespace faiss_bits
