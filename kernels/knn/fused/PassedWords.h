#pragma once

#include <cstdint>

#include "kernels/knn/fused/tensor/SpreadRows.h"

namespace faiss_bits {

/// What passed as bits (PassedLists::bits), in place of lists.
struct PassedWords {
    uint32_t* bits = nullptr; // [rows, perRow]; nullptr: there are lists
    uint32_t perRow = 0;
    uint32_t* counts = nullptr; // [rows]: how many bits are set
    SpreadRows rows;            // which vectors bits are
};

} // namespace faiss_bits
