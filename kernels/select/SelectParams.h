#pragma once

#include "kernels/common/Types.h"

namespace faiss_bits {

/// What the selection kernels get by value. Shapes as in SelectProblem.
struct SelectParams {
    const void* keys = nullptr; // [rows, cols] of the kernel's key type
    idx_t rowStride = 0;
    uint32_t cols = 0;
    uint32_t signMask = 0;    // flips keys for `largest`: 0x80000000, else 0
    bool vectorLoads = false; // rows start at multiples of 16 bytes
    int k = 0;

    const float* colBias = nullptr; // [cols]
    const float* rowBias = nullptr; // [rows] or nullptr: zeros
    float floor = 0; // biased keys below it count as it; 0 or -infinity

    const void* ids = nullptr; // [rows, cols]; nullptr: idOffset + column
    idx_t idStride = 0;
    bool ids64 = true; // of ids and outIds
    idx_t idOffset = 0;

    // Entries beyond it leave an empty place: kNoEntry, and NaN where it is
    // no candidate.
    uint64_t lastEntry = ~uint64_t(0) - 1;

    // A row is split over `splits` blocks of `segment` columns each.
    uint32_t splits = 1;
    uint32_t segment = 0;

    // Candidates of an earlier pass, [rows, numCandidates]; the kernels that
    // merge read them instead of the keys.
    const uint64_t* candidates = nullptr;
    uint32_t numCandidates = 0;

    // splits > 1: the best k of each segment, [rows, splits, k].
    uint64_t* outCandidates = nullptr;
    // splits == 1: the result, [rows, k].
    void* outKeys = nullptr;
    void* outIds = nullptr;
    idx_t outStride = 0;

    // Columns that a thread draws for the first radius; 0: none.
    int samplesPerThread = 0;

    // Blocks that a multiprocessor shall run at a time; 0: as many as fit. Read
    // for k = 1 only.
    int blocksAtATime = 0;

    uint32_t firstRow = 0; // of this launch
};

} // namespace faiss_bits
