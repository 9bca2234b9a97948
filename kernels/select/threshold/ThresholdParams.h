#pragma once

#include "kernels/select/SelectParams.h"
#include "kernels/select/threshold/SamplePlaces.h"
#include "kernels/survivors/ListParams.h"

namespace faiss_bits {

/// Threads of the kernels that split rows.
constexpr int kSplitThreads = 256;
constexpr int kSplitBlocks = 4; // of a multiprocessor

/// Most survivors that a block of a split row gathers before it adds them.
constexpr int kMaxStage = 512;

/// Where several blocks draw the sample of a row: threads of each, groups of
/// all of them together, whose least entries they leave, and most blocks.
constexpr int kPartThreads = 1024;
constexpr int kSampledGroups = 1024;
constexpr int kMaxSampleParts = kSampledGroups / kSampleRun;

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
    // The limit of the row is the entry that so many groups of the sample are
    // not above (each of the four columns of a thread's places is a group).
    int sampleRank = 0;
    int mostSampleRank = 0; // that the limit may turn out to have

    // A fused block lowers its limit to the k-th of what has survived when it
    // has read this many of its tiles, and again whenever it has read
    // `partGrowth` times as many; 0: never.
    uint32_t firstPart = 0;
    uint32_t partGrowth = 8;

    // Tiles of a block on their way to shared memory: 2 or 3.
    int stages = 2;

    // Blocks that draw the sample of one row: a power of two.
    uint32_t sampleParts = 1;
    uint64_t* sampled = nullptr; // [rows, kSampledGroups] for several

    int stage = 0; // survivors that a block gathers first, <= kMaxStage
};

} // namespace faiss_bits
