#pragma once

#include "kernels/select/short_rows/ShortRowsLaunch.h"

namespace faiss_bits {

/// A kernel holds kSorted numbers of each of 32 lanes, and adds 64 keys to less
/// than k of them (NarrowChunks.cuh).
constexpr int mostKOfNarrowChunks(int sorted) {
    return 32 * sorted - 64;
}

/// Enqueues a launch. kernels/select/Select.cmake lists the instances.
template <class T, int kSorted>
void launchNarrowChunks(const ShortRowsParams& params, cudaStream_t stream);

} // namespace faiss_bits
