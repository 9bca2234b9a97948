#pragma once

#include "kernels/ivf/IvfParams.h"

namespace faiss_bits {

/// What of a matrix of distances is near enough.
struct IvfRangeParams {
    IvfParams search;
    float radius = 0;
    bool largest = false;          // greater ones are wanted
    uint32_t* counts = nullptr;    // [rows]
    const idx_t* firsts = nullptr; // [rows]: of the results
    float* outDistances = nullptr;
    idx_t* outIds = nullptr;
};

void launchIvfRangeCounts(const IvfRangeParams& params, cudaStream_t stream);
void launchIvfRangeResults(const IvfRangeParams& params, cudaStream_t stream);

} // namespace faiss_bits
