#pragma once

#include "kernels/knn/FlatKnn.h"

/// What all pairs are expected to take, and how launches are cut by that. The
/// functions of AllPairsKnn.h that only read a problem's shape are defined with
/// them.
namespace faiss_bits {

/// Metrics whose terms cost little more than those of sums of products. All
/// pairs of others are no gain, unless all vectors are candidates.
bool hasShortTerms(Metric metric);
bool areAllCandidates(const FlatKnnProblem& problem);

/// Parts of the narrow tiles of so many queries (pairParts()); 0: tiles are
/// wide, or blocks share none.
int partsOf(const FlatKnnProblem& problem, idx_t rows);

/// Queries that go by all pairs though they are no more than others read
/// vectors for.
bool isOfFew(const FlatKnnProblem& problem);

/// Vectors of a search, at most, by products of float64, and by any.
idx_t mostVectorsOfFloat64(const FlatKnnProblem& problem);
idx_t mostVectors(const FlatKnnProblem& problem);

/// Elements of a row of the matrix.
idx_t strideOf(const FlatKnnProblem& problem);

/// Queries whose distances are there at a time, at most.
idx_t mostTileQueries(idx_t stride, bool byDigits);

/// Queries of a launch, at most so many: launches are alike, or have whole
/// tiles and leave fewer multiprocessors without one in the end.
idx_t queriesAtOnce(const FlatKnnProblem& problem, bool byDigits, idx_t most);

/// Whether products of digits are expected to take less time than those of
/// float64.
bool digitsPay(const FlatKnnProblem& problem);

} // namespace faiss_bits
