#pragma once

#include "kernels/select/short_rows/ShortRowsLaunch.h"

namespace faiss_bits {

/// FewOfBlock.cuh: threads of a row, and survivors of a thread that there is
/// room for.
constexpr int kFewOfBlockThreads = 128;
constexpr int kFewOfBlockRoom = 2;
constexpr int kFewOfBlockMostItems = 64; // keys of a thread

/// Columns of a row that begins at the last key of a line of 32, that so many
/// keys of a thread hold.
constexpr int mostColsOfBlock(int items) {
    return kFewOfBlockThreads * items - 31;
}

/// Enqueues one launch. kernels/select/Select.cmake lists the instances.
template <int kItems>
void launchFewOfBlock(const ShortRowsParams& params, cudaStream_t stream);

} // namespace faiss_bits
