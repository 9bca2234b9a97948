#pragma once

#include "kernels/ivf/IvfKnn.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// planIvfKnn, or what it said to the calling thread the last time where
/// nothing that a plan depends on has changed: a search that follows another
/// one of the same shape has its plan at once, and the device waits until it is
/// there.
///
/// Threads  any; each remembers one plan
IvfKnnPlan planOrLastPlan(const IvfKnnProblem& problem, size_t maxBytes);

/// Whether the plans of two problems are the same: all is equal, but where the
/// queries, their lists and their results lie. For the tests.
bool planAlike(const IvfKnnProblem& a, const IvfKnnProblem& b);

} // namespace faiss_bits::gpu::detail
