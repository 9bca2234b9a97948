#pragma once

#include "kernels/ivf/IvfDirect.h"
#include "tests/ivf/IvfKernelHarness.h"

/// What the tests of direct searches of lists share.
namespace faiss_bits::test {

constexpr size_t kMostBytes = KernelLists::kMaxBytes;

/// A plan of a direct way.
inline IvfKnnPlan planOf(
        const IvfKnnProblem& p,
        bool findsLists,
        bool shared,
        size_t maxBytes = kMostBytes,
        bool byTables = false,
        std::optional<bool> byTerms = {}) {
    IvfKnnPlan plan;
    plan.direct = planIvfDirectWay(
            p, maxBytes, findsLists, shared, byTables, byTerms);
    if (plan.direct) {
        plan.rowsAtATime = p.numQueries;
        plan.bytes = plan.direct->bytes;
    }
    return plan;
}

/// All distances, and a selection of them.
inline IvfKnnPlan planOfAll(const IvfKnnProblem& p) {
    return planIvfDistances(p, kMostBytes);
}

inline KernelCase someCase(uint32_t seed) {
    KernelCase c;
    c.lengths = unevenLengths(16, 90, seed);
    c.q = 5;
    c.nprobe = 6;
    c.k = 10;
    c.seed = seed;
    return c;
}

} // namespace faiss_bits::test
