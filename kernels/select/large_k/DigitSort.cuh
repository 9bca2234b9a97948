/// Kernels that select and sort rows of 16-bit keys by their two digits, least
/// digit first. Which keys are among the k best is known before any is written,
/// so that exactly k are: the keys' digits are counted, high one first.
///
/// Bound by: few rows, launches and the latency of short blocks; many results,
/// votes (nine a key and pass tell a lane which others have its digit) and the
/// sectors that are written one by one.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/select/large_k/DigitCounts.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

/// rows * splits blocks: keys by high digit.
template <class T>
__global__ void __launch_bounds__(kDigitSortThreads)
        countHighsKernel(const __grid_constant__ DigitSortParams p) {
    __shared__ uint32_t counts[kDigits];
    const DigitPart mine(p.splits);
    if (threadIdx.x < kDigits) {
        counts[threadIdx.x] = 0;
    }
    __syncthreads();
    const KeyRow<T, false> keys(p.select, p.select.firstRow + mine.row);
    const SplitRange range(p.select.cols, p.splits, mine.part);
    DigitCounter counter(counts);
    forEachKey(keys, range.begin, range.end, [&](uint32_t key) {
        counter.add(key >> 8);
    });
    counter.flush();
    __syncthreads();
    if (threadIdx.x < kDigits) {
        mine.counts(p.highs, p.splits)[threadIdx.x] = counts[threadIdx.x];
    }
}

/// rows * splits blocks: the limit's high digit; by low digit, keys of that
/// one, and those of lower ones.
template <class T>
__global__ void __launch_bounds__(kDigitSortThreads)
        countLowsKernel(const __grid_constant__ DigitSortParams p) {
    __shared__ DigitRoom room;
    __shared__ uint32_t lows[kDigits];
    __shared__ uint32_t limitLows[kDigits];
    const DigitPart mine(p.splits);
    if (threadIdx.x < kDigits) {
        lows[threadIdx.x] = 0;
        limitLows[threadIdx.x] = 0;
    }
    waitForPrevious();
    const DigitSums highs = sumOfParts(
            mine.countsOfRow(p.highs, p.splits), p.splits, mine.part, room);
    const LimitDigit limit = findDigit(highs.all, p.wanted, room);
    const KeyRow<T, false> keys(p.select, p.select.firstRow + mine.row);
    const SplitRange range(p.select.cols, p.splits, mine.part);
    DigitCounter counter(lows);
    DigitCounter limitCounter(limitLows);
    forEachKey(keys, range.begin, range.end, [&](uint32_t key) {
        const uint32_t high = key >> 8;
        if (high < limit.digit) {
            counter.add(key & 0xFFu);
        } else if (high == limit.digit) {
            limitCounter.add(key & 0xFFu);
        }
    });
    counter.flush();
    limitCounter.flush();
    __syncthreads();
    if (threadIdx.x < kDigits) {
        mine.counts(p.lows, p.splits)[threadIdx.x] = lows[threadIdx.x];
        mine.counts(p.limitLows, p.splits)[threadIdx.x] =
                limitLows[threadIdx.x];
    }
    if (mine.part == 0 && threadIdx.x == 0) {
        p.limits[mine.row] = limit;
    }
}

/// rows * splits blocks: the best by low digit, those of one digit by column.
/// Keys that equal the limit are behind all that share its high digit, and only
/// as many of them are written as belong to the best, the first ones.
template <class T>
__global__ void __launch_bounds__(kDigitSortThreads)
        placeByLowKernel(const __grid_constant__ DigitSortParams p) {
    __shared__ DigitRoom room;
    __shared__ PlacingRoom placing;
    const DigitPart mine(p.splits);
    waitForPrevious();
    const DigitSums lows = sumOfParts(
            mine.countsOfRow(p.lows, p.splits), p.splits, mine.part, room);
    const DigitSums limitLows = sumOfParts(
            mine.countsOfRow(p.limitLows, p.splits), p.splits, mine.part, room);
    const LimitDigit high = p.limits[mine.row];
    const LimitDigit low =
            findDigit(limitLows.all, p.wanted - high.below, room);
    const uint32_t ties = p.wanted - high.below - low.below;
    const bool isBelow = threadIdx.x < low.digit;
    const uint32_t first = sumOfThreadsBefore<kDigitSortThreads>(
            lows.all + (isBelow ? limitLows.all : 0), room.sums);
    if (threadIdx.x < kDigits) {
        placing.next[threadIdx.x] =
                first + lows.before + (isBelow ? limitLows.before : 0);
    }
    if (threadIdx.x == low.digit) {
        placing.next[kTieDigit] = p.wanted - ties + min(limitLows.before, ties);
    }
    const uint32_t limit = high.digit << 8 | low.digit;

    const KeyRow<T, false> keys(p.select, p.select.firstRow + mine.row);
    const SplitRange range(p.select.cols, p.splits, mine.part);
    uint64_t* entries = p.entries + uint64_t(mine.row) * p.wanted;
    placeInOrder<9>(
            range.begin,
            range.end,
            p.wanted,
            placing,
            [&](uint32_t at, uint32_t end, uint64_t(&items)[kDigitSortItems]) {
                uint32_t ordered[kDigitSortItems];
                keys.keysAt(
                        ordered,
                        [&](int i) { return at + i * kWarpSize; },
                        [&](int i) { return at + i * kWarpSize < end; });
#pragma unroll
                for (int i = 0; i < kDigitSortItems; ++i) {
                    items[i] = makeEntry(
                            narrowKey(kNarrowType<T>, ordered[i]),
                            at + i * kWarpSize);
                }
            },
            [&](uint64_t item, uint32_t& digit) {
                const uint32_t key = entryKey(item);
                digit = key == limit ? kTieDigit : key & 0xFFu;
                return key <= limit;
            },
            [&](uint64_t item, uint32_t to) {
                if (to < p.wanted) {
                    entries[to] = item;
                }
            });
}

/// rows * entrySplits blocks: the best by high digit.
__global__ void __launch_bounds__(kDigitSortThreads)
        countEntriesKernel(const __grid_constant__ DigitSortParams p) {
    __shared__ uint32_t counts[kDigits];
    const DigitPart mine(p.entrySplits);
    if (threadIdx.x < kDigits) {
        counts[threadIdx.x] = 0;
    }
    __syncthreads();
    waitForPrevious();
    const uint64_t* entries = p.entries + uint64_t(mine.row) * p.wanted;
    const SplitRange range(p.wanted, p.entrySplits, mine.part);
    DigitCounter counter(counts);
#pragma unroll 4
    for (uint32_t i = range.begin + threadIdx.x; i < range.end;
         i += kDigitSortThreads) {
        counter.add(entryKey(entries[i]) >> 8);
    }
    counter.flush();
    __syncthreads();
    if (threadIdx.x < kDigits) {
        mine.counts(p.entryHighs, p.entrySplits)[threadIdx.x] =
                counts[threadIdx.x];
    }
}

/// rows * entrySplits blocks: the best to their places of the result.
template <class T>
__global__ void __launch_bounds__(kDigitSortThreads)
        placeByHighKernel(const __grid_constant__ DigitSortParams p) {
    __shared__ DigitRoom room;
    __shared__ PlacingRoom placing;
    const DigitPart mine(p.entrySplits);
    waitForPrevious();
    const DigitSums highs = sumOfParts(
            mine.countsOfRow(p.entryHighs, p.entrySplits),
            p.entrySplits,
            mine.part,
            room);
    const uint32_t first =
            sumOfThreadsBefore<kDigitSortThreads>(highs.all, room.sums);
    if (threadIdx.x < kDigits) {
        placing.next[threadIdx.x] = first + highs.before;
    }
    const uint32_t row = p.select.firstRow + mine.row;
    const uint64_t* entries = p.entries + uint64_t(mine.row) * p.wanted;
    const SplitRange range(p.wanted, p.entrySplits, mine.part);
    placeInOrder<8>(
            range.begin,
            range.end,
            p.wanted,
            placing,
            [&](uint32_t at, uint32_t end, uint64_t(&items)[kDigitSortItems]) {
#pragma unroll
                for (int i = 0; i < kDigitSortItems; ++i) {
                    const uint32_t from = at + i * kWarpSize;
                    items[i] = from < end ? entries[from] : 0;
                }
            },
            [&](uint64_t item, uint32_t& digit) {
                digit = entryKey(item) >> 8;
                return true;
            },
            [&](uint64_t item, uint32_t to) {
                writeResult<T>(
                        p.select,
                        row,
                        int(to),
                        makeEntry(
                                widenKey(kNarrowType<T>, entryKey(item)),
                                entryColumn(item)));
            });
    // k is more than the row has.
    for (uint32_t to = p.wanted + mine.part * kDigitSortThreads + threadIdx.x;
         to < uint32_t(p.select.k);
         to += p.entrySplits * kDigitSortThreads) {
        writeResult<T>(p.select, row, int(to), kNoEntry);
    }
}

} // namespace faiss_bits
