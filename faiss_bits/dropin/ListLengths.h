/// How long inverted lists are, which FAISS does not tell its scans.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/ivf/IvfLists.h"

namespace faiss_bits::dropin {

/// In vectors.
struct ListLengths {
    idx_t mostProbed = 0; ///< of all lists of a query together
    idx_t longest = 0;    ///< of one list, probed or not
    idx_t total = 0;      ///< of all lists
};

/// Asks the device. probes: [numQueries, nprobe]; numbers outside
/// 0..numLists-1: no list.
///
/// Stream   waits for `stream`, which must not be under capture
/// Memory   3 KiB of the host's for each thread that is in a call
/// Errors   throws Error when a CUDA call fails
/// Cost     one read of lengths and probes, and the wait
ListLengths findListLengths(
        const IvfLists& lists,
        const idx_t* probes,
        idx_t numQueries,
        int nprobe,
        cudaStream_t stream);

} // namespace faiss_bits::dropin
