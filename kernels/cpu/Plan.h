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
    Variant variant = Variant::Auto; ///< never Auto when planned
    bool byInt16 = false;       ///< candidates are found by Arithmetic::Int16
    bool byBytes = false;       ///< no candidates: Arithmetic::Bytes
    bool byDoubles = false;     ///< no candidates: Arithmetic::Doubles
    int queryBlock = 0,         ///< m_c, as in Choice
            vectorBlock = 0,    ///< n_c
            depthBlock = 0;     ///< d_c
    int tileQueries = 0,        ///< m_r of the micro-kernel
            tileVectors = 0;    ///< n_r
    bool acrossVectors = false; ///< threads share the vectors, not the queries
    /// Every block of queries has its own selection, which its thread finishes:
    /// where the packed vectors are one block.
    bool selectsByBlock = false;
    /// Then: rows of a selection. A certified search finishes those of several
    /// blocks together.
    int64_t pooledQueries = 0;
    int groupPanels = 1; ///< tiles of vectors that a block of components visits
    int64_t bufferCapacity = 0; ///< candidates of a query before a cut
    int64_t firstCapacity = 0;  ///< candidates before the first cut
    int64_t batchQueries =
            0;          ///< queries worked off at a time: bounds the memory
    int threads = 1;    ///< that the loops ask OpenMP for
    std::string target; ///< instruction set, one of targetNames()
    double predictedSeconds = 0; ///< by the cost model
    /// Predictions of every variant that can run, in the order of the enum.
    std::vector<std::pair<Variant, double>> predictions;
    size_t scratchBytes = 0; ///< that the search allocates
};

/// One line: variant, blocks, target, threads and what the model predicts.
std::string toString(const Plan& plan);

} // namespace faiss_bits::cpu
