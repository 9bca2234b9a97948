#pragma once

#include "kernels/ivf/IvfParams.h"

namespace faiss_bits {

/// How queries that probe a list meet its vectors in products of float16.
/// kWhole: vectors have at most kDepth components, and stay where they are for
/// all queries; else they come in parts of so many, again for every tile.
template <bool kWhole>
struct IvfEstimateShape {
    static constexpr bool kIsWhole = kWhole;
    static constexpr int kThreads = 256;
    static constexpr int kBlocks = 2; // of a multiprocessor
    static constexpr int kQueries = 64;
    static constexpr int kWarpVectors = 32;
    static constexpr int kVectors = kThreads / 32 * kWarpVectors;
    static_assert(kVectors == kIvfEstimateVectors);
    static constexpr int kDepth = kWhole ? 128 : 32;
    static constexpr int kSteps = kDepth / 16; // of matrix instructions
    /// Queries whose products are in registers at a time.
    static constexpr int kAtATime = kWhole ? 16 : 64;
};

} // namespace faiss_bits
