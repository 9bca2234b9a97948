#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/Choice.h"

namespace faiss_bits::cpu {

/// How one search runs.
struct Plan {
    Variant variant = Variant::Auto;
    int queryBlock = 0, vectorBlock = 0, depthBlock = 0;
    int tileQueries = 0, tileVectors = 0; ///< m_r, n_r of the micro-kernel
    bool acrossVectors = false; ///< threads share the vectors, not the queries
    /// Every block of queries has its own selection, which its thread finishes:
    /// where the packed vectors are one block.
    bool selectsByBlock = false;
    int groupPanels = 1; ///< tiles of vectors that a block of components visits
    int64_t bufferCapacity = 0; ///< candidates of a query before a cut
    int64_t firstCapacity = 0;  ///< candidates before the first cut
    int64_t batchQueries =
            0; ///< queries worked off at a time: bounds the memory
    int threads = 1;
    std::string target;
    double predictedSeconds = 0;
    /// Predictions of every variant that can run, in the order of the enum.
    std::vector<std::pair<Variant, double>> predictions;
    size_t scratchBytes = 0;
};

/// One line: variant, blocks, target, threads and what the model predicts.
std::string toString(const Plan& plan);

} // namespace faiss_bits::cpu
