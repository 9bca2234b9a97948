#pragma once

#include <cuda_runtime_api.h>

#include "kernels/common/Workspace.h"
#include "kernels/metric_space/MetricGroups.h"

/// What the kernels of a search get, and their launches. Every launch enqueues.
namespace faiss_bits::metric_space {

/// Results in any order. `count` goes on where there is no room. Or bits, where
/// there are such: then nothing is counted.
struct FoundPairs {
    uint64_t* keys = nullptr;   // [capacity] query << idBits | id
    float* distances = nullptr; // [capacity]
    unsigned long long* count = nullptr;
    unsigned long long capacity = 0;
    int idBits = 0;
    /// [rows, bitWords] cleared before: bit id % 32 of word id / 32.
    uint32_t* bits = nullptr;
    uint32_t bitWords = 0;
};

/// Of some queries: which groups each has to look at, and how far it reaches.
struct SearchParams {
    MetricGroups groups;
    const float* queries = nullptr; // [rows, d]
    uint32_t rows = 0;
    float* limits = nullptr;   // [rows] the greatest distance of a result
    double* reaches = nullptr; // [rows] the same as a true distance; < 0: none

    float* toReferences = nullptr; // [rows, stride] canonical distances
    int64_t stride = 0;
    double* pivotLeasts = nullptr; // [rows, references] of them, for pivots
    double* pivotMosts = nullptr;
    uint32_t* stops = nullptr; // [rows] the last group; centers alone

    /// Bit q % 32 of word q / 32 of a group: query q looks at it.
    uint32_t* bits = nullptr;       // [numGroups, words]
    uint32_t words = 0;             // of a group
    uint32_t* listFirsts = nullptr; // [numGroups + 1]
    uint32_t* lists = nullptr;      // queries, group after group
    uint32_t* tileFirsts = nullptr; // [numGroups + 1]
    uint2* tiles = nullptr;         // group, and number within it
    /// Pairs of lists and their groups' vectors. Where they are most of all
    /// pairs, tiles of everything take less time.
    unsigned long long* listedPairs = nullptr;

    FoundPairs found;
    /// [2] distances computed, and of them those to references; or nullptr.
    unsigned long long* numDistances = nullptr;
    void* temp = nullptr; // of CUB
    size_t tempBytes = 0;
};

// Of a tile of GroupScan.cu: queries, and vectors by metric.
constexpr uint32_t scanQueries(Metric metric) {
    return metric == Metric::L2 ? 64 : 32;
}
constexpr uint32_t scanVectors(Metric metric) {
    return metric == Metric::L2 ? 64 : 32;
}
/// Of everything, by L2. A pair takes about two thirds of the time that it
/// takes in a tile of a group (H200, d = 128).
constexpr uint32_t kWideVectors = 256;

/// toReferences: all of rows x numReferences.
void launchReferenceDistances(
        const SearchParams& params,
        int multiprocessors,
        cudaStream_t stream);

/// limits to reaches, all of them `limit` unless `areGiven`.
void launchReaches(
        const SearchParams& params,
        float limit,
        bool areGiven,
        cudaStream_t stream);

/// toReferences and reaches to bits; centers that are results to found.
void launchGroupBits(const SearchParams& params, cudaStream_t stream);

/// bits from those of a first stage: given [numGroups, stride], of which
/// `words` of a group are there and query `first` is the first of ours.
void launchGivenBits(
        const SearchParams& params,
        const uint32_t* given,
        uint32_t stride,
        uint32_t words,
        idx_t first,
        cudaStream_t stream);

/// bits of the `count` bounded groups that seem nearest to each query: by the
/// distance to the center, or by what the pivots say. keys is [rows,
/// numBounded], and for centers not needed.
void launchSeedBits(
        const SearchParams& params,
        float* keys,
        uint32_t count,
        cudaStream_t stream);

/// bits to lists and tiles.
void launchLists(const SearchParams& params, cudaStream_t stream);
/// Bytes of SearchParams::temp for so many groups. Asks the device.
size_t listsTempBytes(uint32_t numGroups);

/// What launchGroupScan takes.
enum class ScanOf : uint8_t {
    Everything, ///< all rows and all vectors
    Lists,      ///< lists and their groups
    Within, ///< all that is within the limits: either, which takes less time
};

/// Those pairs that are within the limits to found.
void launchGroupScan(
        const SearchParams& params,
        ScanOf what,
        int multiprocessors,
        cudaStream_t stream);

// What launchGroupWarps has room for.
constexpr int kMostWarpDims = 16;
constexpr uint32_t kMostWarpPivots = 32;

/// All that is within one limit to found, group by group, without bits, lists
/// and tiles: up to kMostWarpDims components; pairs, or bits. The end of a List
/// of Clusters is not looked for. Of `params` it takes groups, queries, rows,
/// words, found and numDistances.
void launchGroupWarps(
        const SearchParams& params,
        float limit,
        int multiprocessors,
        cudaStream_t stream);

/// The same without lists, tiles and bits: a block a query, as the paper.
void launchQueryMajor(const SearchParams& params, cudaStream_t stream);

} // namespace faiss_bits::metric_space
