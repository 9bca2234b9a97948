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

/// Keys without bias of 80 to 2,560 columns, k from 2 to 4 for the shortest and to
/// 10 for longer ones (to 32 for keys of 16 bits), and more rows than can have a
/// warp each at the same time.
FewOfRowsPlan planFewOfRows(const SelectProblem& problem);

} // namespace faiss_bits
