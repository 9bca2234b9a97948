#pragma once

#include "kernels/device/KeySource.h"
#include "kernels/survivors/ResultParams.h"

namespace faiss_bits {

/// What the selection kernels get by value. Shapes as in SelectProblem.
struct SelectParams : KeySource, ResultParams {
    // A row is split over `splits` blocks of `segment` columns each.
    uint32_t splits = 1;
    uint32_t segment = 0;

    // Candidates of an earlier pass, [rows, numCandidates]; the kernels that
    // merge read them instead of the keys.
    const uint64_t* candidates = nullptr;
    uint32_t numCandidates = 0;

    // splits > 1: the best k of each segment, [rows, splits, k]; splits == 1:
    // the result is written.
    uint64_t* outCandidates = nullptr;

    // Columns that a thread draws for the first radius; 0: none.
    int samplesPerThread = 0;

    // Blocks that a multiprocessor shall run at a time; 0: as many as fit. Read
    // for k = 1 only.
    int blocksAtATime = 0;
};

static_assert(!hasTailPadding<SelectParams>());

} // namespace faiss_bits
