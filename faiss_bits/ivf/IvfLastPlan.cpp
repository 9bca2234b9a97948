#include "faiss_bits/ivf/IvfLastPlan.h"

#include <tuple>
#include <utility>
#include <vector>

namespace faiss_bits::gpu::detail {

namespace {

// Each function names all members of a struct: one that gets another member
// does not compile until somebody has said here whether plans depend on it.

auto membersOf(const ListDecoding& decoding) {
    const auto& [trained, ranges, byInverse, numParts, partBits, codebook, centroids] =
            decoding;
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
    const auto& [numLists, d, numVectors, layout, coding, decoding, vectors, lengths, lengths64, idKind, ids, selectedBits, firstWords, wordsOfList, idTest] =
            lists;
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
    const auto& [computeCapability, multiprocessors, sharedBytes, blockSharedBytes, singleToDouble] =
            device;
    return std::tuple(
            computeCapability,
            multiprocessors,
            sharedBytes,
            blockSharedBytes,
            singleToDouble);
}

auto membersOf(const IvfKnnProblem& problem) {
    const auto& [metric, lists, numQueries, nprobe, k, mostVectors, longestList, selectedShare, queries, probes, centroids, centroidMetric, mayWait, outDistances, outIds, device] =
            problem;
    // Plans are made for arrays wherever these lie.
    return std::tuple(
            numQueries, // what differs most often
            nprobe,
            k,
            metric,
            membersOf(lists),
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

struct MadePlan {
    IvfKnnProblem problem;
    size_t maxBytes;
    IvfKnnPlan plan;
};

/// The last plans of a thread.
struct MadePlans {
    std::vector<MadePlan> plans;
    size_t next = 0; // to be replaced, when there are kMostPlans
};

} // namespace

bool planAlike(const IvfKnnProblem& a, const IvfKnnProblem& b) {
    return membersOf(a) == membersOf(b);
}

IvfKnnPlan planOrLastPlan(const IvfKnnProblem& problem, size_t maxBytes) {
    // Replicas search slices of somewhat different sizes, call by call.
    constexpr size_t kMostPlans = 16;
    static thread_local MadePlans made;
    for (const MadePlan& one : made.plans) {
        if (one.maxBytes == maxBytes && planAlike(one.problem, problem)) {
            return one.plan;
        }
    }
    IvfKnnPlan plan = planIvfKnn(problem, maxBytes);
    MadePlan one = {problem, maxBytes, plan};
    if (made.plans.size() < kMostPlans) {
        made.plans.push_back(std::move(one));
    } else {
        made.plans[made.next] = std::move(one);
        made.next = (made.next + 1) % kMostPlans;
    }
    return plan;
}

} // namespace faiss_bits::gpu::detail
