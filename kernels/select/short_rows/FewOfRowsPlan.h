#pragma once

#include <string>

#include "kernels/select/Select.h"

namespace faiss_bits {

/// How a few of the best of many rows are found (FewOfRows.cuh). lanes = 0: in
/// another way.
struct FewOfRowsPlan {
    int lanes = 0;         ///< of a row
    int minima = 0;        ///< of a lane, among which the limit is sought
    int stages = 0;        ///< of shared memory
    idx_t tileCols = 0;    ///< of a row at a time
    idx_t tiles = 0;       ///< of a row
    idx_t pitch = 0;       ///< keys between two rows of a stage
    size_t sharedBytes = 0; ///< of a block
    idx_t blocks = 0;      ///< of a launch of all rows

    std::string toString() const;
};

/// Keys without bias, k from 2 to 64 and cols / 4 (beyond 32: cols / 8), more
/// than 32 columns, and more rows than can have a warp each at the same time.
FewOfRowsPlan planFewOfRows(const SelectProblem& problem);

} // namespace faiss_bits
