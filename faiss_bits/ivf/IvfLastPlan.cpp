#include "faiss_bits/ivf/IvfLastPlan.h"

#include <optional>
#include <tuple>
#include <utility>

namespace faiss_bits::gpu::detail {

namespace {

// Each function names all members of a struct: one that gets another member
// does not compile until somebody has said here whether plans depend on it.

auto membersOf(const ListDecoding& decoding) {
    const auto& [trained,
                 ranges,
                 byInverse,
                 numParts,
                 partBits,
                 codebook,
                 centroids] = decoding;
    return std::tuple(
            trained,
            ranges,
            byInverse,
            numParts,
            partBits,
            codebook,
            centroids);
}

auto membersOf(const ListIdTest& test) {
    const auto& [kind, isInverted, bytes, numBytes, first, end] = test;
    return std::tuple(kind, isInverted, bytes, numBytes, first, end);
}

auto membersOf(const IvfLists& lists) {
    const auto& [numLists,
                 d,
                 numVectors,
                 layout,
                 coding,
                 decoding,
                 vectors,
                 lengths,
                 lengths64,
                 idKind,
                 ids,
                 selectedBits,
                 firstWords,
                 wordsOfList,
                 idTest] = lists;
    return std::tuple(
            numLists,
            d,
            numVectors,
            layout,
            coding,
            membersOf(decoding),
            vectors,
            lengths,
            lengths64,
            idKind,
            ids,
            selectedBits,
            firstWords,
            wordsOfList,
            membersOf(idTest));
}

auto membersOf(const DeviceTraits& device) {
    const auto& [computeCapability,
                 multiprocessors,
                 sharedBytes,
                 blockSharedBytes,
                 singleToDouble] = device;
    return std::tuple(
            computeCapability,
            multiprocessors,
            sharedBytes,
            blockSharedBytes,
            singleToDouble);
}

auto membersOf(const IvfKnnProblem& problem) {
    const auto& [metric,
                 lists,
                 numQueries,
                 nprobe,
                 k,
                 mostVectors,
                 longestList,
                 selectedShare,
                 queries,
                 probes,
                 centroids,
                 centroidMetric,
                 mayWait,
                 outDistances,
                 outIds,
                 device] = problem;
    // Plans are made for arrays wherever these lie.
    return std::tuple(
            metric,
            membersOf(lists),
            numQueries,
            nprobe,
            k,
            mostVectors,
            longestList,
            selectedShare,
            queries != nullptr,
            probes != nullptr,
            centroids,
            centroidMetric,
            mayWait,
            outDistances != nullptr,
            outIds != nullptr,
            membersOf(device));
}

struct LastPlan {
    IvfKnnProblem problem;
    size_t maxBytes;
    IvfKnnPlan plan;
};

} // namespace

bool planAlike(const IvfKnnProblem& a, const IvfKnnProblem& b) {
    return membersOf(a) == membersOf(b);
}

IvfKnnPlan planOrLastPlan(const IvfKnnProblem& problem, size_t maxBytes) {
    static thread_local std::optional<LastPlan> last;
    if (!last || last->maxBytes != maxBytes ||
        !planAlike(last->problem, problem)) {
        last.reset(); // whatever is thrown
        IvfKnnPlan plan = planIvfKnn(problem, maxBytes);
        last.emplace(LastPlan{problem, maxBytes, std::move(plan)});
    }
    return last->plan;
}

} // namespace faiss_bits::gpu::detail
