#pragma once

#include <optional>

#include "kernels/ivf/IvfKnn.h"

/// Searches of so few queries that the canonical distances of all vectors of
/// their lists cost no more than to find candidates for them. Nothing is to be
/// proved then, and nothing searched again.
///
/// A scan writes the keys of all, 4 bytes each, and the least of each 32. The
/// k-th least of these is a limit: as many 32s as that have all that is not
/// above it, whatever the data. One block of a query reads their keys, looks up
/// their ids and sorts by both. Where the lists are those of the nearest
/// centroids, a kernel makes the keys of the centroids, and every block of the
/// scan finds the nearest itself: three kernels in all. Queries that meet in
/// lists share what is read of them; of few pairs of a query and a list that is
/// one kernel more. Of more than some neighbours the scan writes the distances,
/// of which a selection takes the nearest. Product codes that queries share are
/// scanned for estimates of keys, whose bound is proved (IvfProductBound.h):
/// the block of a query finds the keys of all that may be among the nearest.
/// So are float32 vectors and codes of 8 bits that a query reads by itself
/// (IvfFloorBound.h).
/// Those that these scans do not take, or of long vectors, are scanned by
/// tables of entries (IvfTableBound.h), of many queries in parts of these.
namespace faiss_bits {

/// Queries that such a search has at most, but by estimates of product codes,
/// by tables and of some shared codes: more of them where vectors have so few
/// dimensions that other ways take longer (IvfDirectParams.h).
idx_t mostIvfDirectQueries(const IvfLists& lists, int k);

/// The plan, if the search can go so in at most maxBytes of scratch, whether it
/// pays or not. Host only, no CUDA call.
std::optional<IvfDirectPlan> planIvfDirect(
        const IvfKnnProblem& problem,
        size_t maxBytes);

/// The same of one way: that finds lists, or not; and shares them, or not; and
/// of product codes goes by tables, or not; and of shared ones makes these of
/// terms, or not, or as is expected to take less time.
std::optional<IvfDirectPlan> planIvfDirectWay(
        const IvfKnnProblem& problem,
        size_t maxBytes,
        bool findsLists,
        bool shared,
        bool byTables = false,
        std::optional<bool> byTerms = {});

/// Whether the plan looks at tables: where product codes have no other way by
/// look-ups in shared memory.
bool mayGoByTables(const IvfKnnProblem& problem);

void runIvfDirect(
        const IvfDirectPlan& plan,
        const IvfKnnProblem& problem,
        Workspace workspace,
        cudaStream_t stream);

} // namespace faiss_bits
