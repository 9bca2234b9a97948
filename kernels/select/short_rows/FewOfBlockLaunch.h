#pragma once

#include "kernels/select/short_rows/ShortRowsLaunch.h"

namespace faiss_bits {

/// FewOfBlock.cuh: numbers among which the limit is sought, and survivors that
/// there is room for.
constexpr int kFewOfBlockNumbers = 128;
constexpr int kFewOfBlockRoom = 256;

/// Keys of a thread of its kernels, by the length of rows, and threads of a
/// row.
constexpr int kFewOfBlockItems[] = {32, 48, 64, 40};
constexpr int fewOfBlockThreads(int items) {
    return items == 40 ? 256 : 128;
}

/// Threads among which keys are turned, and keys at a multiple of which the
/// block begins to read.
constexpr int kFewOfBlockTurns = 128;

/// Columns of a row that begins at the last of so many keys, that so many keys
/// of a thread hold.
constexpr int mostColsOfBlock(int items) {
    return fewOfBlockThreads(items) * items - (kFewOfBlockTurns - 1);
}

/// Enqueues one launch. kernels/select/Select.cmake lists the instances.
template <int kItems>
void launchFewOfBlock(const ShortRowsParams& params, cudaStream_t stream);

} // namespace faiss_bits
