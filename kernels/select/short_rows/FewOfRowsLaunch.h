#pragma once

#include "kernels/select/short_rows/ShortRowsLaunch.h"

namespace faiss_bits {

/// Blocks of kShortRowsThreads threads that a multiprocessor runs at a time, at
/// most.
constexpr int kFewOfRowsBlocks = 8;

struct FewOfRowsParams {
    SelectParams select;
    uint32_t rows = 0;     // of this launch
    uint32_t tileCols = 0; // of a row at a time
    uint32_t tiles = 0;    // of a row
    uint32_t pitch = 0;    // keys between two rows in shared memory
    uint32_t stages = 0;   // tiles of a row there, 2 or 3
};

/// Enqueues a launch of so many blocks with so much shared memory.
/// kernels/select/Select.cmake lists the instances.
template <class T, int kLanes, int kMinima>
void launchFewOfRows(
        const FewOfRowsParams& params,
        unsigned blocks,
        size_t sharedBytes,
        cudaStream_t stream);

} // namespace faiss_bits
