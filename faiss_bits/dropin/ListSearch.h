/// A call of one of FAISS's scans of inverted lists, and how it runs on our
/// kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "kernels/common/Types.h"
#include "kernels/ivf/IvfLists.h"

namespace faiss_bits::dropin {

/// Device memory of the current device, without gaps between rows.
struct ListRequest {
    Metric metric = Metric::L2; ///< or InnerProduct
    /// All but numVectors, and the tables that searchLists makes of those
    /// below.
    IvfLists lists;
    /// Of lists of residuals what those of each probe are relative to, if FAISS
    /// tells it so: [numQueries, nprobe, d], the same wherever a list is
    /// probed; else nullptr, and lists.decoding.centroids are known.
    const float* residualBases = nullptr;
    /// Of product codes [numParts, d / numParts, 2^partBits]; else nullptr.
    const float* codebook = nullptr;
    bool hasTables = false; ///< FAISS has made tables of its lists before

    idx_t numQueries = 0;
    int nprobe = 0;
    int k = 0;
    const float* queries = nullptr; ///< [numQueries, d]
    const idx_t* probes = nullptr;  ///< [numQueries, nprobe]

    float* outDistances = nullptr; ///< [numQueries, k]
    idx_t* outIds = nullptr;       ///< [numQueries, k]

    /// What makes FAISS's own function end the process, or what of its data is
    /// not as we know it, as text; empty if there is nothing.
    std::string mismatch;
    /// What the call is an example of, if we have nothing for it.
    std::string left;
};

/// Why the request must go to FAISS's own function, or an empty string.
std::string refusalOf(const ListRequest& request);

/// Searches the lists as FAISS does, or leaves it to FAISS where that does not
/// pay: searches under graph capture, whose lists might grow before the graph
/// runs; where float64 is slow, queries that share no lists; ListSearch.cpp has
/// the numbers. Then it returns what it left, as text, and has enqueued no
/// search; else an empty string.
///
/// Result   canonical distances (kernels/canonical/Distance.h) to the vectors
///          that codes stand for (IvfLists.h), best first; equal distances:
///          lower id first (of lists without ids the lower list, then place). A
///          distance that is not better than the worst finite number is never
///          returned, as in FAISS: its place, and those of queries whose lists
///          have fewer than k vectors, are (that number, -1)
/// Stream   enqueues on `stream`, and waits for it: before, to learn how long
///          the lists are, and where queries share lists for how many of them
///          have to be searched again
/// Memory   448 MiB of Scratch, or what one query needs; of residuals with
///          bases 4 d + 8 bytes a list more, and of product codes the codebook
/// Errors   throws Error when a CUDA call fails or the device cannot run this
///          build
std::string searchLists(const ListRequest& request, cudaStream_t stream);

} // namespace faiss_bits::dropin
