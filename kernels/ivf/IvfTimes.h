#pragma once

#include "kernels/ivf/IvfKnn.h"

/// How long the ways of a search of inverted lists take, in seconds, roughly:
/// what tells them apart (H200).
namespace faiss_bits::ivf_times {

/// Every query reads its lists by itself: all distances.
double ofStreams(const IvfKnnProblem& problem);

/// All distances, in tiles.
double ofTiles(const IvfKnnPlan& plan, const IvfKnnProblem& problem);

/// Estimates, then the distances of candidates.
double ofEstimates(const IvfKnnPlan& plan, const IvfKnnProblem& problem);

} // namespace faiss_bits::ivf_times
