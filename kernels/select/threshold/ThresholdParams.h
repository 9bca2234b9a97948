#pragma once

#include "kernels/select/SelectParams.h"
#include "kernels/select/threshold/SamplePlaces.h"
#include "kernels/survivors/ListParams.h"

namespace faiss_bits {

/// Where neighbours are alike a run of the sample tells hardly more than one
/// key. How alike they are is the index of dispersion of the runs: variance
/// over mean of how many keys each has below a limit, 1 in random order and up
/// to kSampleRun where a run is below as a whole. The limit's rank is chosen by
/// it: rank i is for dispersions up to 2^i kLeastDispersion, the last for all.
constexpr float kLeastDispersion = 1.5f;
constexpr int kSampleRanks = 6;

/// The limit is an entry that `rank` to `most` groups of the sample are not
/// above: to find an exact rank takes longer.
struct SampleRank {
    int rank = 0;
    int most = 0;
};

/// A fused block that has seen more survivors than it has room for keeps k and
/// some more: it has room for so many beyond k, or for the whole row.
constexpr uint32_t kLeastFusedRoom = 64;

/// Threads of the kernels that split rows.
constexpr int kSplitThreads = 256;
constexpr int kSplitBlocks = 4; // of a multiprocessor

/// Most survivors that a block of a split row gathers before it adds them.
constexpr int kMaxStage = 512;
/// Where more are expected, those that each warp gathers.
constexpr uint32_t kMostHeldOfWarp = 96;

/// Where several blocks draw the sample of a row: threads of each, groups of
/// all of them together, whose least entries they leave, and most blocks.
constexpr int kPartThreads = 1024;
constexpr int kSampledGroups = 1024;
constexpr int kMaxSampleParts = kSampledGroups / kSampleRun;

/// Survivors that each block of a cluster has room for, where `sorted` are
/// sorted at the end: more than those and kLeastFusedRoom.
constexpr uint32_t clusterRoom(int sorted) {
    return sorted <= 2048 ? 4096 : 2 * sorted;
}
/// Most blocks of a cluster on most devices that have clusters; on every one
/// kPortableCluster.
constexpr int kMostCluster = 16;

/// Blocks of a multiprocessor that the registers of the fused kernel allow.
/// Tiles that stream through shared memory need few blocks.
constexpr int wholeRowBlocks(int threads, int room, bool streams) {
    return (streams || threads == 512 ? 1024
                    : room <= 1024    ? 1280
                                      : 768) /
            threads;
}

/// What the kernels get beside the shape of the selection.
struct ThresholdParams : SelectParams, ListParams {
    // Places of four columns that a thread draws; 0: every column survives.
    int samplePlaces = 0;
    // Of the row's limit, by dispersion; each of the four columns of a thread's
    // places is a group.
    SampleRank sampleRanks[kSampleRanks];

    // A fused block lowers its limit to the k-th of what has survived when it
    // has read this many of its tiles, and again whenever it has read
    // `partGrowth` times as many; 0: never.
    uint32_t firstPart = 0;
    uint32_t partGrowth = 8;

    // Tiles of a block on their way to shared memory: 2 or 3.
    int stages = 2;

    // The second turn of split rows, for those that their sample misled, has
    // another one, which every block draws if `sampled` is nullptr then.
    // Survivors are counted in countsAgain, which is nullptr where there is no
    // such turn.
    bool isAgain = false;
    uint32_t* countsAgain = nullptr; // [rows]

    // Blocks that draw the sample of one row, or share it as a cluster: a power
    // of two.
    uint32_t sampleParts = 1;
    uint64_t* sampled = nullptr;      // [rows, kSampledGroups] for several
    uint64_t* sampledAgain = nullptr; // of the second, if drawn in one launch

    // Survivors that a block gathers first, <= kMaxStage; 0: each warp some.
    int stage = 0;
};

} // namespace faiss_bits
