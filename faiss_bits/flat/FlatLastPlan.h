#pragma once

#include "kernels/knn/FlatKnnPlan.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// planFlatKnn, or what it said to the calling thread before where nothing that
/// a plan depends on has changed. With VectorFacts' question for the image it
/// saves 3 to 7 us of a search of 100 or 1,024 queries (H200, 140 to 580 us).
///
/// Threads  any; each remembers its last 16 plans, of some hundred bytes
FlatKnnPlan planOrLastPlan(const FlatKnnProblem& problem, size_t maxBytes);

/// Whether the plans of two problems are the same: all is equal, but where the
/// queries and their results lie. For the tests.
bool planAlike(const FlatKnnProblem& a, const FlatKnnProblem& b);

} // namespace faiss_bits::gpu::detail
