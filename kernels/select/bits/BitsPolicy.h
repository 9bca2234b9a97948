#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/common/DeviceTraits.h"

/// What the plan and the kernels of bits must agree on.
namespace faiss_bits {

constexpr int kBitsThreads = 256;

/// Items of the kernel that is taken for k <= kMaxSelectK (Policies.inc).
constexpr int bitsItemsFor(int k) {
#define BITS_ITEMS(items, mostK) \
    if (k <= mostK) {            \
        return items;            \
    }
#include "kernels/select/bits/Policies.inc"
#undef BITS_ITEMS
    return 0;
}

/// Blocks of a multiprocessor that the registers allow. Most of the shared
/// memory of a multiprocessor goes to its blocks; what is left is the cache
/// that values are read from again.
constexpr int bitsBlocksPerMultiprocessor(int items) {
    return items <= 4 ? 4 : 3;
}

/// The same for k = 1, which has no list.
constexpr int kBestBlocks = 5;
/// Threads that compare what the blocks of a row found.
constexpr int kBestPartsThreads = 128;

/// Shared memory of a block: the list, the buffer, and what the sort wants.
constexpr size_t bitsSharedBytes(int items) {
    const size_t entries = kBitsThreads * (2 * items + (items < 2 ? 1 : 2));
    return entries * sizeof(uint64_t) + 16;
}

/// Blocks that a multiprocessor of the device holds at once.
inline int64_t bitsBlocksAtOnce(const DeviceTraits& device, int k) {
    if (k == 1) {
        return kBestBlocks;
    }
    const int items = bitsItemsFor(k);
    // Every block takes 1 KiB besides.
    const size_t fit = device.sharedBytes / (bitsSharedBytes(items) + 1024);
    return std::clamp<int64_t>(
            int64_t(fit), 1, bitsBlocksPerMultiprocessor(items));
}

} // namespace faiss_bits
