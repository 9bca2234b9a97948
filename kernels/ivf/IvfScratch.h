#pragma once

#include "kernels/ivf/IvfKnn.h"
#include "kernels/ivf/IvfParams.h"

namespace faiss_bits {

/// Elements of a matrix: rows begin on 32 bytes.
constexpr idx_t kIvfRowStep = 8;

/// The scratch of an IVF search, as plan and run lay it out.
struct IvfScratch {
    IvfParams params;      // what lies in scratch, and its sizes
    float* keys = nullptr; // of selections
    int32_t* places = nullptr;
    // Of a search by estimates: what was chosen, and its distances.
    float* lowerBounds = nullptr;
    int32_t* chosen = nullptr;
    IvfRescoreParams rescored;
    Workspace select;

    /// chooses: some of what is found become candidates, else all of it.
    IvfScratch(
            const IvfKnnProblem& problem,
            const IvfKnnPlan& plan,
            WorkspaceSlices& slices,
            bool chooses = true);
};

/// Candidates of 32 vectors of a list up to which a warp scores them by itself.
/// More of them share what a block decodes, or copies.
constexpr uint32_t ivfMostOfFew(ListCoding coding) {
    return coding == ListCoding::Float32 ? 4 : 16;
}

/// The queries that are searched again: their list comes before all other
/// scratch, which they then share.
struct IvfAgainScratch {
    uint32_t* rows = nullptr;
    uint32_t* count = nullptr;

    IvfAgainScratch(
            const IvfKnnProblem& problem,
            const IvfKnnPlan& plan,
            WorkspaceSlices& slices);
};

/// Limits of rows that were not proved: the k-th distances of what each has
/// found, which no result is farther than, as its k-th place has them.
struct IvfAgainLimits {
    const uint32_t* rows = nullptr; // [count]
    uint32_t count = 0;
    int k = 0;
    bool largest = false;
    const float* outDistances = nullptr; // of all rows
    float* keys = nullptr;               // [count]
    int32_t* places = nullptr;           // [count]; -1: there is none
};

/// Arrays of `count` queries that are searched again.
struct IvfSomeRows {
    IvfAgainParams params;
    IvfAgainLimits limits;

    IvfSomeRows(
            const IvfKnnProblem& problem,
            idx_t count,
            WorkspaceSlices& slices);
};

/// A search of `count` of the queries, whose lists are known, with all
/// distances kept.
IvfKnnProblem ivfProblemOfSome(const IvfKnnProblem& problem, idx_t count);

/// Of some rows: the final selection, and for a search by estimates those of
/// the k-th of near lists and of candidates.
SelectProblem ivfSelection(
        const IvfKnnProblem& problem,
        const IvfKnnPlan& plan,
        idx_t rows);
SelectProblem ivfLimits(
        const IvfKnnProblem& problem,
        const IvfKnnPlan& plan,
        idx_t rows);
SelectProblem ivfChoice(
        const IvfKnnProblem& problem,
        const IvfKnnPlan& plan,
        idx_t rows);

/// Vectors of the longest list, or more.
idx_t ivfLongestList(const IvfKnnProblem& problem);

/// Throws Error that names what is wrong with a shape.
void checkIvf(const IvfKnnProblem& problem);

} // namespace faiss_bits
