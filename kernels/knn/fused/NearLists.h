#pragma once

#include <cuda_runtime_api.h>

#include "kernels/knn/fused/FusedParams.h"

namespace faiss_bits {

/// Lists of a scan that kept its products (PassedLists::products), of images
/// by L2 or inner product.
struct NearListsParams {
    CertifiedParams search;             // numCandidates is the room of a list
    const float* inverses = nullptr;    // [rows] of the queries' images
    const uint64_t* products = nullptr; // [rows, numCandidates]
    int32_t* columns = nullptr;         // the same: written
    uint32_t rank = 0;
    uint32_t* counts = nullptr; // [rows]
    float* limits = nullptr;    // [rows], never raised
    float* complete = nullptr;  // [rows], never raised
    /// Of the rows that it takes, products are those of the scan in 8 bits
    /// (ByteScanParams), and limits its own. launchNearLists alone.
    ByteSearch bytes;
};

/// Entries of a list that is looked at.
constexpr uint32_t kMostNearEntries = 1024;

/// The key of the rank'th of a second sample becomes the limit, as its
/// canonical distance would (CloserLimit.cuh); where that may be one of the
/// search.k nearest, as rank >= search.k, it is how far a vector with that key
/// can be (KeyReach.h), so that the canonical distances of `rank` vectors are
/// within what is complete. Counts become zero. Lists that are too short or
/// beyond kMostSecondEntries leave their limits.
///
/// Cost  a read of the lists
void launchNearLimits(
        Metric metric,
        const NearListsParams& params,
        cudaStream_t stream);

/// Leaves in each list, as columns, what may be among the `rank` nearest:
/// vectors whose canonical distances are up to what the rank'th key reaches
/// (KeyReach.h) are all in it still, and `complete` says so. Where the list is
/// longer than kMostNearEntries, or nothing follows, all stays.
///
/// Cost  two reads of the lists
void launchNearLists(
        Metric metric,
        const NearListsParams& params,
        cudaStream_t stream);

/// Makes each list entries of the keys that its products say, in place of the
/// products (search.entries), for the selection of the search.k least.
/// `complete` becomes FLT_MAX where the list has search.k or more, and minus
/// infinity, so that the query is searched again, where it has fewer, but not
/// all there are, or where products say no keys.
///
/// Vectors whose product is no number get their canonical distance. So do all
/// where some vector is so long that its product has no bound; `complete` then
/// stays, as of a certified search, or becomes minus infinity where the list
/// has no room for all that passed. search.numRescored counts them.
///
/// Cost  a read and a write of the lists
void launchKeyEntries(
        Metric metric,
        const NearListsParams& params,
        cudaStream_t stream);

} // namespace faiss_bits
