#pragma once

#include "kernels/select/threshold/ThresholdParams.h"

namespace faiss_bits {

/// Of the kernel that reads rows again whose lists are wrong after all turns:
/// clusterBlocks blocks share a row.
struct RowsAgainParams : ThresholdParams {
    uint32_t rows = 0; // that have lists
    uint32_t clusterBlocks = 1;
    uint32_t* settled = nullptr; // [rows], the entries of each list in the end
};

/// Threads of such a block.
constexpr int kAgainThreads = 1024;

} // namespace faiss_bits
