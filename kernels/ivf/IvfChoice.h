#pragma once

#include "kernels/ivf/IvfKnn.h"
#include "kernels/ivf/IvfParams.h"

/// Limits and candidates of rows that a block holds in registers, for small k;
/// of others selections are made.
namespace faiss_bits {

/// Of a row.
constexpr idx_t kIvfMostChoiceColumns = 10240;
constexpr int kIvfMostChoiceK = 128;
/// Candidates.
constexpr int kIvfMostChosen = 256;

/// A candidate that is not there, in IvfRescoreParams::places.
constexpr uint64_t kIvfNoPlace = ~uint64_t(0);

/// Whether candidates are chosen so, in place of the selection plan.choice.
inline bool choosesIvf(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    const idx_t columns = plan.room > 0 ? plan.room : plan.stride;
    return p.k <= kIvfMostChoiceK && columns <= kIvfMostChoiceColumns &&
            plan.candidates <= kIvfMostChosen;
}

/// Whether limits are found so, in place of the selection plan.limits.
inline bool findsIvfLimits(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    return p.k <= kIvfMostChoiceK && plan.stride <= kIvfMostChoiceColumns;
}

/// Whether each row scores its candidates for itself (launchIvfRowResults), as
/// rows seldom want vectors of the same 32.
bool scoresIvfByRows(const IvfKnnPlan& plan, const IvfKnnProblem& p);

struct IvfLimitParams {
    IvfParams search;
    // [rows, k], of which the last of each row is written: a key that is no
    // less than the k-th of the row's; the place -1: it has no k.
    float* nearest = nullptr;
    int32_t* places = nullptr;
};

/// Probes of a row whose lists and pairs launchIvfChoice has at hand; byLists
/// is for no more.
constexpr uint32_t kMostChoiceProbes = 32;

struct IvfChoiceParams {
    IvfRescoreParams rescore;
    // [rows, candidates + 1], of which the last of each row is written: the
    // least lower bound that is not a candidate's, though it may be among the
    // k nearest; -1: there is none.
    int32_t* chosen = nullptr;
    float* lowerBounds = nullptr;
    bool countsGroups = true; ///< for launchIvfChosen
    /// Of bounds of all lists: the others of `chosen` are the candidates'
    /// pairs, each its number among those of its list.
    bool byLists = false;
};

/// An upper bound of the k-th of every row of the matrix.
void launchIvfLimits(const IvfLimitParams& params, cudaStream_t stream);

/// Candidates of every row, of the matrix or of what was found: their places
/// and ranks, and how many each group has; NaN for the distance of those that
/// are not there. In place of a selection; launchIvfChosen is next. Counts of
/// groups, and numPlaced, are 0 (IvfBegin).
void launchIvfChoice(const IvfChoiceParams& params, cudaStream_t stream);

/// As launchIvfCandidates, after launchIvfChoice. byLists: as that was; there
/// are no `groups`, and candidates have their pairs (IvfListCandidates.h).
void launchIvfChosen(
        const IvfRescoreParams& params,
        bool byLists,
        cudaStream_t stream);

/// After launchIvfChoice without groups: the distances of candidates, and the
/// results.
template <Metric kMetric, ListCoding kCoding>
void launchIvfRowResults(const IvfResultParams& params, cudaStream_t stream);

/// Results of such rows, in place of the selection plan.selection and
/// launchIvfResults: of all candidates, whose matrix has been scored.
void launchIvfFewResults(const IvfResultParams& params, cudaStream_t stream);

} // namespace faiss_bits
