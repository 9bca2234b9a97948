/// Rows of up to some thousand columns: several in a block, each in the
/// registers of 8 to 32 lanes, read once. No sample, no barrier of a block.
///
/// Bound by: the read of the keys for k = 1 and some hundred columns, else by
/// instructions (docs/algorithms.md).
#pragma once

#include "kernels/select/short_rows/NarrowRow.cuh"
#include "kernels/select/short_rows/ShortRow.cuh"
#include "kernels/select/short_rows/ShortRowsLaunch.h"

namespace faiss_bits {

/// Blocks of a multiprocessor that there are registers for where the compiler,
/// left to itself, takes a few too many; 0: left to itself, as a 1 would let it
/// take all. 16 entries of 32 keys: 80 bytes are spilled, some 26 instructions
/// a bound, of 124 registers otherwise.
template <int kLanes, int kItems, int kSorted>
constexpr int kShortRowsLeastBlocks = kItems == 16 && kSorted == 16 ? 8
        : kItems == 32 && kSorted == 16                             ? 5
        : kItems == 8 && kSorted == 8                               ? 16
                                                                    : 0;

/// kLanes lanes a row, from select.firstRow on.
template <class T, bool kHasBias, int kLanes, int kItems, int kSorted>
__global__ void __launch_bounds__(
        kShortRowsThreads,
        kShortRowsLeastBlocks<kLanes, kItems, kSorted>)
        shortRowsKernel(const __grid_constant__ ShortRowsParams params) {
    using Row = ShortRow<T, kHasBias, kLanes, kItems, kSorted>;
    constexpr int kRows = kShortRowsThreads / kLanes;
    __shared__ alignas(16) uint64_t room[kRows][Row::kSpace];
    static_assert(Row::kSpace % 2 == 0);
    const uint32_t inBlock = threadIdx.x / kLanes;
    const uint32_t at = blockIdx.x * kRows + inBlock;
    const bool isThere = at < params.rows;
    const SelectParams& select = params.select;
    Row(select, select.firstRow + (isThere ? at : 0), isThere, room[inBlock])
            .run();
}

/// The same of rows of 16-bit keys that NarrowRow takes.
template <class T, int kLanes, int kItems, int kSorted>
__global__ void __launch_bounds__(kShortRowsThreads)
        narrowRowsKernel(const __grid_constant__ ShortRowsParams params) {
    using Row = NarrowRow<T, kLanes, kItems, kSorted>;
    constexpr int kRows = kShortRowsThreads / kLanes;
    __shared__ uint32_t room[kRows][Row::kRoomStride];
    const uint32_t inBlock = threadIdx.x / kLanes;
    const uint32_t at = blockIdx.x * kRows + inBlock;
    const bool isThere = at < params.rows;
    const SelectParams& select = params.select;
    Row(select, select.firstRow + (isThere ? at : 0), room[inBlock])
            .run(isThere);
}

} // namespace faiss_bits
