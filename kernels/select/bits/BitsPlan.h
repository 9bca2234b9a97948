#pragma once

#include <string>

#include "kernels/select/Select.h"

namespace faiss_bits {

/// Columns of a row that one block takes, pass by pass, until one block a row
/// is left (Hanak 2023, 5.4.2).
struct BitsPass {
    uint32_t length = 0;  // of a row of this pass
    uint32_t segment = 0; // columns a block
    uint32_t splits = 1;
    int blocksAtATime = 0; // of a multiprocessor; 0: as many as fit
};

struct BitsPlan {
    static constexpr int kMaxPasses = 8;
    int numPasses = 0;
    BitsPass passes[kMaxPasses];

    std::string toString() const;
};

/// Host only. Throws Error for a shape that runSelect does not take.
BitsPlan planBits(const SelectProblem& problem);

} // namespace faiss_bits
