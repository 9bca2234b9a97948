#pragma once

#include <array>
#include <string>

#include "kernels/select/Select.h"
#include "kernels/select/threshold/ThresholdParams.h"
#include "kernels/select/threshold/ThresholdPolicy.h"

namespace faiss_bits {

/// Who draws the second sample of a split row that the first one misled.
enum class SecondDraw {
    ByEachBlock, ///< that reads the row
    WithFirst,   ///< as many blocks as draw the first one, in its launch
    Alone        ///< the same in a launch of their own
};

/// How SampleThreshold goes about a problem. Host only, no CUDA call.
struct ThresholdPlan {
    bool fused = false;     ///< one block a row does everything
    bool isComb = false;    ///< the same, and each of its tiles spans the row
    bool isCluster = false; ///< sampleParts blocks share a row in one launch
    bool isHeld = false;    ///< sampleParts blocks hold a row in registers
    ThresholdPolicy policy; ///< of a fused block, or of those that finish rows

    int samplePlaces = 0; ///< a thread; 0: no sample, every column survives
    std::array<SampleRank, kSampleRanks> sampleRanks; ///< by dispersion
    uint32_t sampleParts = 1; ///< blocks that draw the sample of a row
    uint32_t capacity = 0;    ///< survivors that a row may have
    uint32_t expected = 0;    ///< about so many in random order, a quarter more

    uint32_t firstPart = 0; ///< tiles before a fused block lowers its limit
    uint32_t partGrowth = 1;
    int stages = 2; ///< tiles on their way to a fused block

    uint32_t segment = 0; ///< columns a block, where rows are split
    uint32_t splits = 1;
    int stage = 0;       ///< survivors that a block gathers first
    idx_t batchRows = 0; ///< rows at a time

    // Of split rows that the sample misled, which all blocks read again.
    int againPlaces = 0; ///< of the second sample, a thread; 0: no other turn
    std::array<SampleRank, kSampleRanks> againRanks;
    SecondDraw secondDraw = SecondDraw::ByEachBlock;
    uint32_t lastBlocks = 1; ///< that share a row which both misled, k > 2048

    /// Of a block that draws the first sample.
    int sampleThreads() const;

    std::string toString() const;
};

ThresholdPlan planThreshold(const SelectProblem& problem);

} // namespace faiss_bits
