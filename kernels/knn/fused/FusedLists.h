#pragma once

#include <cstddef>

#include "kernels/knn/fused/FusedKnn.h"

/// How the lists of a search by strips are finished.
namespace faiss_bits {

/// Whether a warp finishes each list of the plan (FinishPassed.h): lists are
/// short and so many that their warps fill the GPU, and the vectors lie in L2.
/// From memory they come faster to a block a list.
bool finishesByWarps(const FusedPlan& plan, const FlatKnnProblem& problem);

/// Whether another kernel computes the distances of these before, from a copy
/// of the vectors (ScoreSlots.h): of what one kernel passes always, as that
/// copy is small.
bool scoresBySlots(const FusedPlan& plan, const FlatKnnProblem& problem);

/// Whether the scan for these sets bits: so many vectors pass that a word of 32
/// has some, and to append them would cost it more. One kernel for all has
/// nothing but bits.
bool passesToBits(const FusedPlan& plan, const FlatKnnProblem& problem);

/// Whether the scan of most queries is expected to be in 8 bits
/// (tensor/ByteScan.h): as of uniform data. The device decides.
bool expectsBytes(const FusedPlan& plan, const FlatKnnProblem& problem);

/// Queries whose bits stay in L2; for most of them, where all is at once.
idx_t mostQueriesOfBits(const FlatKnnProblem& problem, bool atOnce);

/// Whether lists have the scan's products, which say which of what passed are
/// to have canonical distances (NearLists.h): where a read of what passes takes
/// longer than to find the products in the scan's registers.
bool keepsProducts(const FusedPlan& plan, const FlatKnnProblem& problem);

/// Whether results are what the scan's products say, and nothing is scored
/// (SearchMode::Fast): L2 and inner products of more than kFewQueries queries,
/// on tensor cores of compute capability 9.0, whose lists no warps finish and
/// whose limits are not the caller's. Not where 8 bits are expected: a scan in
/// 16 takes longer than that, canonical distances included.
bool answersByKeys(const FusedPlan& plan, const FlatKnnProblem& problem);

/// Whether that kernel writes the results, and no entry to memory.
bool finishesBySlots(const FusedPlan& plan, const FlatKnnProblem& problem);

/// Entries of a list that have a place in memory: columns, and distances.
struct ListPlaces {
    size_t columns = 0;
    size_t entries = 0;
};
ListPlaces listPlaces(const FusedPlan& plan, const FlatKnnProblem& problem);

/// Words of a query's bits.
uint32_t wordsOf(const FlatKnnProblem& problem);

} // namespace faiss_bits
