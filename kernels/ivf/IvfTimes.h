#pragma once

#include "kernels/ivf/IvfKnn.h"

/// How long the ways of a search of inverted lists take, in seconds, roughly:
/// what tells them apart (H200).
namespace faiss_bits::ivf_times {

/// Whether estimates look up the vectors of product codes once for 512 queries,
/// some components together, in shared memory; else they do it again for every
/// 64 (IvfEstimateShape.h), or component after component (ProductBlocks.cuh).
bool areDecodedInBlocks(const IvfLists& lists);

/// A component of a distance where a query reads its lists by itself.
double ofComponent(const IvfLists& lists);

/// Every query reads its lists by itself: all distances.
double ofStreams(const IvfKnnProblem& problem);

/// The keys of all, as IvfDirect.h; without the host's time
/// (IvfDirectTimes.cpp).
double ofDirect(const IvfDirectPlan& plan, const IvfKnnProblem& problem);

/// All distances, in tiles.
double ofTiles(const IvfKnnPlan& plan, const IvfKnnProblem& problem);

/// To read and decode all lists once.
double ofReading(const IvfKnnProblem& problem);

/// To append so much that is within limits, and to choose of it.
double ofFound(double count);

/// Estimates, and the distances of what may be in a range: a hundredth, more is
/// not known before the search.
double ofRangeEstimates(const IvfKnnPlan& plan, const IvfKnnProblem& problem);

/// Estimates, then the distances of candidates.
double ofEstimates(const IvfKnnPlan& plan, const IvfKnnProblem& problem);

} // namespace faiss_bits::ivf_times
