#pragma once

#include <string>

#include "kernels/cpu/ivf/IvfProblem.h"

namespace faiss_bits::cpu {

/// How pairs of a query and a list become distances. Changes time alone.
enum class IvfWay : uint8_t {
    Auto,
    Tiles,  ///< a packed piece of the list meets tiles of packed queries
    Direct, ///< one query at a time, nothing packed
    /// One query at a time: all vectors of its lists in one scan. Of lists
    /// that stay where they are; others go the way that Auto finds.
    Gathered,
    Exact, ///< canonical distances of all
};

/// What threads share.
enum class IvfSharing : uint8_t {
    Auto,
    Queries, ///< each takes a block of queries, and goes through their lists
    Lists,   ///< all go through the lists of the same queries
};

/// What a test may force.
struct IvfChoice {
    IvfWay way = IvfWay::Auto;
    IvfSharing sharing = IvfSharing::Auto;
    int queryBlock = 0; ///< most queries worked off together; 0: chosen
    std::string target; ///< instruction set, as Choice::target
};

/// The k nearest of every query among the vectors in its lists.
struct IvfKnnProblem : IvfProblem {
    /// Of the lists of a query, in their order, so many vectors; 0: all.
    idx_t mostVectors = 0;

    idx_t k = 0;                   ///< neighbours of a query, 1 or more
    float* outDistances = nullptr; ///< [numQueries, k]
    idx_t* outIds = nullptr;       ///< [numQueries, k], -1 = none
    bool givePlaces = false;       ///< ids are list << 32 | place

    IvfChoice choice;
};

/// Finds the k nearest vectors of every query in its lists, exactly.
///
/// Metric   L2 is squared; of InnerProduct the largest are first
/// Result   canonical distances (kernels/canonical/Distance.h), best first;
///          equal distances: lower id first; a vector at NaN is no result;
///          fewer than k: the rest is (+max, -1), for InnerProduct (-max, -1).
///          The same bits for every target, batch and number of threads
/// Limits   the lists that a block of queries probes have fewer than 2^31
///          vectors together
/// Threads  OpenMP: over blocks of queries, or over the lists where queries are
///          few. Safe to call from several threads
/// Memory   up to 16 MiB of candidates a thread, unless one query needs more (8
///          bytes a candidate, up to 2 k + 128 of them), and 8 bytes for each
///          pair of a query and a list of a block
/// Errors   throws Error that names a bad argument and its value, before
///          anything is written
/// Cost     2 d operations for each pair of a query and a vector of its lists;
///          one read of a list for a block of queries
/// Source   lists that meet all their queries at once: Johnson et al. 2017 for
///          the index; docs/design/cpu.md
void runIvfKnn(const IvfKnnProblem& problem);

} // namespace faiss_bits::cpu
