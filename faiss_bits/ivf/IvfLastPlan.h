#pragma once

#include "kernels/ivf/IvfKnn.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// planIvfKnn, or what it said to the calling thread before where nothing that
/// a plan depends on has changed: a search that follows another one of the same
/// shape has its plan at once. The device waits until it is there: 26 us of a
/// search of 1.3 ms, and twice that in the threads of other devices (H200).
///
/// Threads  any; each remembers its last 16 plans, of some hundred bytes
IvfKnnPlan planOrLastPlan(const IvfKnnProblem& problem, size_t maxBytes);

/// Whether the plans of two problems are the same: all is equal, but where the
/// queries, their lists and their results lie. For the tests.
bool planAlike(const IvfKnnProblem& a, const IvfKnnProblem& b);

} // namespace faiss_bits::gpu::detail
