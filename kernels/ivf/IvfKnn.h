#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <optional>
#include <string>

#include "kernels/common/DeviceTraits.h"
#include "kernels/common/Types.h"
#include "kernels/common/Workspace.h"
#include "kernels/ivf/IvfLists.h"
#include "kernels/select/Select.h"

namespace faiss_bits {

/// One search of the lists that each query is given.
struct IvfKnnProblem {
    Metric metric = Metric::L2; ///< L2 or InnerProduct
    IvfLists lists;             ///< on the device

    idx_t numQueries = 0; ///< 0 or more
    int nprobe = 0;       ///< lists of a query, 1 or more
    int k = 0;            ///< neighbours of a query, 1 or more
    /// No query's lists have more vectors together; below 2^31. A greater
    /// number than need be costs time and scratch, a smaller one is undefined.
    idx_t mostVectors = 0;
    /// Likewise, of one list; 0: it is not known.
    idx_t longestList = 0;
    /// The part of the vectors that a filter selects, about: for the plan
    /// alone.
    double selectedShare = 1;

    const float* queries = nullptr; ///< [numQueries, d], on the device
    /// [numQueries, nprobe]; numbers outside 0..numLists-1: no list. A list
    /// that a query names twice is searched twice.
    const idx_t* probes = nullptr;
    /// [numLists, d], on the device: a query's lists are those of its nprobe
    /// nearest centroids, by centroidMetric (L2 or InnerProduct), equal ones:
    /// lower number first, but none that is NaN away. Read in place of `probes`
    /// by plans that find lists (IvfKnnPlan); others read `probes`, and those
    /// by estimates have them for centers of bounds. nullptr: there are none
    const float* centroids = nullptr;
    Metric centroidMetric = Metric::L2; ///< L2 or InnerProduct

    /// Whether the run may wait for the device, which a capture of the stream
    /// forbids. Many queries take less time where it may.
    bool mayWait = true;

    float* outDistances = nullptr; ///< [numQueries, k]
    idx_t* outIds = nullptr;       ///< [numQueries, k]

    DeviceTraits device; ///< never changes the result
};

/// How a search goes that writes all distances (IvfDirect.h).
struct IvfDirectPlan {
    bool findsLists = false; ///< by IvfKnnProblem::centroids
    bool shared = false;     ///< queries share what is read of a list
    /// Of product codes: estimates by tables of entries, for queries that share
    /// them (IvfTableScan.cuh), or for each by itself (IvfBookTables.cuh)
    bool byTables = false;
    /// Of shared tables: entries are sums of a query's and a list's terms,
    /// which are made first (IvfTableTerms.cu)
    bool byTerms = false;
    idx_t rowsAtATime = 0; ///< queries
    bool selects = false;  ///< of distances, as k is large
    SelectPlan selection;  ///< then
    idx_t stride = 0;      ///< keys of a query
    size_t bytes = 0;      ///< of scratch
};

/// How a search goes: made once from its shape.
struct IvfKnnPlan {
    /// Few queries, or product codes by tables; the rest of the plan is for
    /// others.
    std::optional<IvfDirectPlan> direct;
    /// Queries and vectors of a list meet in tiles; else every query reads its
    /// lists by itself.
    bool listMajor = false;
    bool wideTiles = false; ///< of 256 vectors, else 64
    /// Lists of a query of which a matrix holds all distances, or estimates:
    /// all nprobe, or the nearest ones, of which the k-th estimate sets a
    /// limit.
    int nearProbes = 0;
    idx_t room = 0;     ///< with a limit: for what is within it, a query
    int candidates = 0; ///< by estimates: whose distances are found, a query
    /// By estimates: each query scores its candidates for itself; else they are
    /// sorted by the 32 vectors that they belong to, which are read once.
    bool scoresByRows = false;
    idx_t rowsAtATime = 0; ///< queries
    idx_t stride = 0;      ///< of a row of the matrix of distances
    int boundVectors = 1;  ///< with a limit: that share a column of the matrix
    /// With a limit: so many vectors of each near list have columns, where it
    /// has more; a multiple of 256. 0: all have
    idx_t sampleVectors = 0;
    SelectPlan selection;     ///< of rowsAtATime rows
    SelectPlan lastSelection; ///< of the last rows, as the next ones
    SelectPlan limits;        ///< by estimates: of near lists
    SelectPlan lastLimits;    ///< of the last rows
    SelectPlan choice;        ///< by estimates: of candidates
    SelectPlan lastChoice;    ///< of the last rows
    size_t bytes = 0;         ///< of scratch

    /// Estimates by tensor cores say which distances matter; the run waits for
    /// the device.
    bool byEstimates() const {
        return candidates > 0;
    }

    /// Lists are found by the run, and not read from IvfKnnProblem::probes.
    bool findsLists() const {
        return direct && direct->findsLists;
    }

    /// One line.
    std::string toString() const;
};

/// Whether so many queries meet in a list, on average, that these are read by
/// lists and not by queries, also where all distances are kept. Host only.
bool ivfPairsMeet(const IvfKnnProblem& problem);

/// The plan whose scratch takes at most maxBytes, or that with the least. Host
/// only, no CUDA call. Throws what runIvfKnn throws for a bad shape.
IvfKnnPlan planIvfKnn(const IvfKnnProblem& problem, size_t maxBytes);

/// The plan of all distances alone, as a matrix of them is made for a part of
/// the queries at a time (IvfDistances.h); likewise.
IvfKnnPlan planIvfDistances(const IvfKnnProblem& problem, size_t maxBytes);

/// Finds the k nearest vectors of every query among those of its lists.
///
/// Result   distances are canonical (kernels/canonical/Distance.h), best first;
///          equal distances: lower id first; never NaN. Fewer than k vectors:
///          the rest is (+FLT_MAX, -1), for inner products (-FLT_MAX, -1). The
///          same bits whatever the scratch, the batch and the device
/// Stream   enqueues on `stream`; a search by estimates waits, to see which
///          queries are not proved: those are searched again, within limits or
///          with all distances kept, and it may wait once more
/// Memory   plan.bytes: for some queries at a time 4 bytes for every vector of
///          near lists, or for four of them, or 12 for each place of the room
///          if that is more, 24 for each candidate, 8 (k + 1) bytes and 12 a
///          list; of the index 16 bytes a list, and by estimates 40 for 32
///          vectors; and 4 bytes a query. Few queries: 5.2 bytes for every
///          vector of their lists, for 32 vectors more a list, and for every
///          list of the index where they find lists; of product codes that they
///          share 512 bytes a dimension, too, or by tables 4 a number of the
///          codebook, and queries in parts of up to 384 MiB, where they are of
///          terms with 4 bytes for each row of a part of a query, and as much
///          of a list, up to 112 MiB; where they share lists and ids are
///          looked up (IvfLists::idTest), 4 bytes for 32 vectors of the index
///          and 4 a list, or up to four times that
/// Errors   throws Error on a bad argument (named) or a failed launch
/// Cost     few queries: 3 d operations of float64 a pair, three or four
///          kernels; that share product codes, 2 d operations of float16
///          matrix instructions; by tables a look-up a code for eight queries,
///          and for as many and a list 8 d operations of float32 for each row
///          of a part of the codebook. By estimates: 2 d operations of float16
///          matrix instructions a pair.
///          Else, where some queries meet in a list, as many of float64, and
///          the distances written and read. Else every query reads its lists,
///          and a pair takes 3 d operations of float64
/// Source   Johnson et al. 2017, 5.2 (IVF); tiles as kernels/knn/all_pairs
///
/// enqueued  if it is not empty: called when all is enqueued that a run does
///           which searches no query again, before it waits; and once more
///           behind what it searched again, if it did. Until then the results
///           of these queries are what was there
void runIvfKnn(
        const IvfKnnPlan& plan,
        const IvfKnnProblem& problem,
        Workspace workspace,
        cudaStream_t stream,
        const std::function<void()>& enqueued = nullptr);

} // namespace faiss_bits
