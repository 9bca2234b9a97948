#include "faiss_bits/ivf/IvfLastPlan.h"

#include <tuple>

#include "faiss_bits/common/LastPlans.h"

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

} // namespace

bool planAlike(const IvfKnnProblem& a, const IvfKnnProblem& b) {
    return membersOf(a) == membersOf(b);
}

IvfKnnPlan planOrLastPlan(const IvfKnnProblem& problem, size_t maxBytes) {
    static thread_local LastPlans<IvfKnnProblem, IvfKnnPlan> made;
    return made.get(problem, maxBytes, planAlike, planIvfKnn);
}

} // namespace faiss_bits::gpu::detail
