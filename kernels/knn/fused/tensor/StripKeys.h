#pragma once

#include <cstdint>

namespace faiss_bits {

/// Where a scan leaves, for every query and strip, the least key of the strip's
/// vectors. A strip is some vectors, in all about as many as any other one;
/// each vector is in one. As they are of different vectors, the k-th of a
/// query's is no less than its k-th key, and little more where there are many
/// more strips.
///
/// Keys are those of runTensorScan, for L2 and cosine less the query's norm.
struct StripKeys {
    /// [rows, perRow]. Infinity: no vector of the strip has a number. Minus
    /// infinity: one has to pass always, as those with NaN do by cosine
    /// (runTensorImage), or has an infinite component, but by L2, where those
    /// are infinitely far. launchStripLimits passes over both.
    float* keys = nullptr;
    uint32_t perRow = 0; ///< a multiple of 16
};

/// How vectors are cut into strips.
struct StripPlan {
    uint32_t unitsPerChunk = 0; ///< of the scan; 0: there are none
    uint32_t perRow = 0;
};

} // namespace faiss_bits
