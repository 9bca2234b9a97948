#pragma once

#include "kernels/ivf/IvfParams.h"

namespace faiss_bits {

/// Columns of a part of a row are a multiple of these.
constexpr uint32_t kIvfRangeStep = 1024;

/// What of a matrix of distances is near enough. A block takes a part of a row.
struct IvfRangeParams {
    IvfParams search;
    float radius = 0;
    bool largest = false;          // greater ones are wanted
    uint32_t parts = 1;            // of a row
    uint32_t partColumns = 0;      // of a part; the last may have fewer
    uint32_t* counts = nullptr;    // [rows, parts]
    const idx_t* firsts = nullptr; // [rows, parts]: of the results
    float* outDistances = nullptr;
    idx_t* outIds = nullptr;
};

void launchIvfRangeCounts(const IvfRangeParams& params, cudaStream_t stream);
void launchIvfRangeResults(const IvfRangeParams& params, cudaStream_t stream);

} // namespace faiss_bits
