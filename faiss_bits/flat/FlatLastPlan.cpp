#include "faiss_bits/flat/FlatLastPlan.h"

#include <cstdint>
#include <tuple>

#include "faiss_bits/common/LastPlans.h"

namespace faiss_bits::gpu::detail {

namespace {

// Each function names all members of a struct: one that gets another member
// does not compile until somebody has said here whether plans depend on it.

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

/// Whether an array is there, and what loads it allows.
uintptr_t kindOf(const void* array) {
    constexpr uintptr_t kWidest = 16;
    return array ? reinterpret_cast<uintptr_t>(array) % kWidest : kWidest;
}

auto membersOf(const FlatKnnProblem& problem) {
    const auto& [metric, metricArg, dataType, numVectors, partVectors, numQueries, batchQueries, d, k, vectors, vectorsRowMajor, queries, queriesRowMajor, vectorNorms, vectorFacts, rowMaxima, allowedBits, allowedIds, numAllowed, limits, numWithin, mode, exactQueries, greatestNorm, searchImage, imageInOrder, imageHasBytes, numRepeated, numRescored, outDistances, outIds, idType, device] =
            problem;
    return std::tuple(
            numQueries, // what differs most often
            batchQueries,
            k,
            metric,
            metricArg,
            dataType,
            numVectors,
            partVectors,
            d,
            vectors,
            vectorsRowMajor,
            kindOf(queries),
            queriesRowMajor,
            vectorNorms,
            vectorFacts,
            rowMaxima,
            allowedBits,
            allowedIds,
            numAllowed,
            kindOf(limits),
            numWithin,
            mode,
            kindOf(exactQueries),
            greatestNorm,
            searchImage,
            imageInOrder,
            imageHasBytes,
            numRepeated,
            numRescored,
            kindOf(outDistances),
            kindOf(outIds),
            idType,
            membersOf(device));
}

} // namespace

bool planAlike(const FlatKnnProblem& a, const FlatKnnProblem& b) {
    return membersOf(a) == membersOf(b);
}

FlatKnnPlan planOrLastPlan(const FlatKnnProblem& problem, size_t maxBytes) {
    static thread_local LastPlans<FlatKnnProblem, FlatKnnPlan> made;
    return made.get(problem, maxBytes, planAlike, planFlatKnn);
}

} // namespace faiss_bits::gpu::detail
