#pragma once

#include <memory>

#include "kernels/knn/certified/Certified.h"
#include "kernels/range/FlatRangePlan.h"

namespace faiss_bits {

/// Scratch of one run, in the order it is taken.
struct RangeScratch {
    float* limits = nullptr;     // [tileQueries]
    uint32_t* bits = nullptr;    // [tileQueries, words]
    int64_t* counts = nullptr;   // [items of a tile + 1]
    uint32_t* sectors = nullptr; // [items of a tile]
    uint32_t* next = nullptr;    // a number
    int64_t* offsets = nullptr;  // [items of a tile + 1]
    int64_t* inOrder = nullptr;  // the same, of a batch
    int64_t* begins = nullptr;   // the same
    int64_t* kept = nullptr;     // the same
    int64_t* places = nullptr;   // the same
    int64_t* bounds = nullptr;   // [tileQueries + 2]
    void* sums = nullptr;        // of the prefix sums
    size_t sumsBytes = 0;        //
    float* distances = nullptr;  // [capacity]
    uint32_t* columns = nullptr; // [capacity]
    float* matrix = nullptr;     // lies where distances and columns lie
    CertifiedScratch certified;  // the widened queries
    std::unique_ptr<FusedScan> scan;

    RangeScratch(
            const FlatKnnProblem& problem,
            const FlatRangePlan& plan,
            WorkspaceSlices& slices);
};

/// The search that a range search makes of a problem: certified, of no places,
/// filtered by bits alone.
FlatKnnProblem rangeProblemOf(const FlatKnnProblem& problem);

} // namespace faiss_bits
