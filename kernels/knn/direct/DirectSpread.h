#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/direct/DirectParams.h"

/// Finishes of large k by several blocks: one block would be long about
/// finding what may belong to the k best.
namespace faiss_bits {

/// Groups that there have to be for each of the k.
constexpr uint32_t kLeastSpreadGroups = 4;
/// Blocks of a query.
constexpr int kSpreadBlocks = 32;
/// Entries that each has room for.
constexpr uint32_t kSpreadRoom = 256;

/// What the blocks find.
struct DirectSpread {
    uint64_t* entries = nullptr; // [rows, kSpreadBlocks, kSpreadRoom]
    // [rows, kSpreadBlocks], entries of a block; above kSpreadRoom: more than
    // there was room for, and none counts
    uint32_t* counts = nullptr;
    uint64_t* limits = nullptr; // [rows], which no entry of these is above
    // [rows, kSpreadBlocks]: what a block left out is above it; kNoEntry:
    // nothing that is not above the limit
    uint64_t* cuts = nullptr;
};

struct DirectSpreadParams {
    DirectFinishParams finish;
    DirectSpread spread;
    // Of a block that finds more than mostKept: it keeps the least ones, at
    // least so many. The launch sets both.
    uint32_t leastKept = 0;
    uint32_t mostKept = 0;
};

/// Makes the results that launchDirectFinish makes of the same parameters, by
/// two kernels, for params.finish.k <= kMaxFinishK.
void launchDirectSpread(
        const DirectSpreadParams& params,
        unsigned rows,
        cudaStream_t stream);

} // namespace faiss_bits
