/// How long inverted lists are, which FAISS does not tell its scans.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "kernels/ivf/IvfLists.h"

namespace faiss_bits::dropin {

/// In vectors.
struct ListLengths {
    idx_t mostProbed = 0; ///< of all lists of a query together
    idx_t longest = 0;    ///< of one list, probed or not
    idx_t total = 0;      ///< of all lists
    /// Lists that are not as long as was known; of a ListGuard, those that are
    /// longer, and queries whose lists have too many vectors.
    idx_t numOthers = 0;
};

/// Lists, and which of them queries probe.
struct ListProbes {
    const IvfLists& lists;
    const idx_t* probes; ///< [numQueries, nprobe]; outside the lists: none
    idx_t numQueries;
    int nprobe;
};

/// Asks the device. known: what lengths are compared with, as many and of the
/// same type, on the device; or nullptr.
///
/// Stream   waits for `stream`, which must not be under capture
/// Memory   4 KiB of the host's for each thread that is in a call
/// Errors   throws Error when a CUDA call fails
/// Cost     one read of lengths and probes, and the wait
ListLengths findListLengths(
        const ListProbes& p,
        const void* known,
        cudaStream_t stream);

/// Lengths and probes for a search that is enqueued before anybody knows how
/// long the lists are: no list is longer than was known, and no query has more
/// vectors than expected, whatever the lists are now. What would not fit is cut
/// off, and the search is wrong then, but stays within its memory; read()
/// tells.
class ListGuard {
   public:
    /// Enqueues on `stream`, and does not wait. known: as findListLengths()
    /// takes it. safeLengths: [numLists]; safeProbes: [numQueries, nprobe].
    ListGuard(
            const ListProbes& p,
            const void* known,
            idx_t mostProbed,
            int32_t* safeLengths,
            idx_t* safeProbes,
            cudaStream_t stream);
    /// Without read() it waits for the stream.
    ~ListGuard();
    ListGuard(const ListGuard&) = delete;
    ListGuard& operator=(const ListGuard&) = delete;

    /// What lists are like in truth: once the stream was waited for.
    ListLengths read();

   private:
    struct Memory;

    const std::unique_ptr<Memory> memory_;
    const unsigned blocks_;
    const cudaStream_t stream_;
    bool isRead_ = false;
};

} // namespace faiss_bits::dropin
