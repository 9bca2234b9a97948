#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "benchs/SweepCells.h"

namespace faiss_bits::bench {

/// What the methods of one cell came to.
struct SweepResult {
    size_t cell = 0;   ///< its number
    double ours = 0;   ///< ms
    double random = 0; ///< ours with random keys
    std::string best;  ///< fastest rival with right answers; may be none
    double bestMs = 0;

    bool isBehind() const {
        return !best.empty() && bestMs < ours;
    }
};

/// Prints where ours is behind, and where the order of the keys slows it most.
void printSummary(
        const std::vector<SweepResult>& results,
        const std::vector<SweepCell>& cells);

} // namespace faiss_bits::bench
