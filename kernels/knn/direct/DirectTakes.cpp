#include "kernels/knn/direct/DirectTakes.h"

#include <algorithm>
#include <cmath>

#include "kernels/knn/direct/DirectFew.h"
#include "kernels/knn/direct/DirectKnn.h"
#include "kernels/knn/direct/DirectSpread.h"
#include "kernels/knn/fused/FusedKnn.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/survivors/SurvivorSort.h"

namespace faiss_bits {

namespace {

/// Of the queries in shared memory, in float64.
constexpr int kMostDims = 4096;
constexpr int kMostDimsOfSeveral = 1024;
/// One block finishes a query.
constexpr idx_t kMostQueries = 1024;
constexpr uint32_t kMostLogUnits = 5;
/// That many warps have work, where there are as many units.
constexpr double kLeastGroups = 8192;

/// So few pairs of so many dimensions that eight lanes a pair take less time.
constexpr idx_t kMostSlotPairs = 32768;
constexpr int kLeastSlotDims = 64;

/// Of fewer dimensions what follows the sums is most of the time.
constexpr int kLeastCosineDims = 17;
constexpr int kLeastProductDims = 64;

bool bySlots(const FlatKnnProblem& p) {
    return p.d >= kLeastSlotDims &&
            p.numQueries * directPlaces(p) <= kMostSlotPairs;
}

/// Up to four inner products of short rows that begin on 16 bytes share reads
/// as it is: 131,072 x 128 of them take 3 to 12% longer by DirectProducts.cuh
/// (measured, H200).
bool sharesReads(const FlatKnnProblem& p) {
    constexpr int kMostShared = 256;
    constexpr int kOfAnyType = 8; // components of 16 bits in 16 bytes
    return p.metric == Metric::InnerProduct && batchOf(p) <= kDirectQueries &&
            p.d <= kMostShared && p.d % kOfAnyType == 0;
}

/// Whether several queries share what is read and converted, and their vectors'
/// own sums (DirectProducts.cuh).
bool byProducts(const FlatKnnProblem& p) {
    const bool isCosine = p.metric == Metric::Cosine;
    return (isCosine || p.metric == Metric::InnerProduct) && p.numQueries > 1 &&
            batchOf(p) <= kFewQueries &&
            p.d >= (isCosine ? kLeastCosineDims : kLeastProductDims) &&
            !sharesReads(p) && directProductQueries(p.numQueries, p.d) > 0;
}

} // namespace

DirectLaunch directLaunchFor(Metric metric) {
    switch (metric) {
        case Metric::L2:
            return launchDirectScan<Metric::L2>;
        case Metric::InnerProduct:
            return launchDirectScan<Metric::InnerProduct>;
#ifndef FAISS_BITS_PRODUCTS_ONLY
        case Metric::L1:
            return launchDirectScan<Metric::L1>;
        case Metric::Linf:
            return launchDirectScan<Metric::Linf>;
        case Metric::Cosine:
            return launchDirectScan<Metric::Cosine>;
#endif
        default:
            return nullptr;
    }
}

bool takesDirect(const FlatKnnProblem& p) {
    return p.mode != SearchMode::Plain && directLaunchFor(p.metric) &&
            (p.vectorsRowMajor || p.d == 1) && p.k <= kMaxFinishK &&
            p.d <= kMostDims && p.numVectors > 0 &&
            p.numQueries <= kMostQueries && p.device.singleToDouble <= 2;
}

idx_t directPlaces(const FlatKnnProblem& p) {
    return p.allowedIds ? std::min(p.numAllowed, p.numVectors) : p.numVectors;
}

DirectShape directShape(const FlatKnnProblem& p) {
    return bySlots(p)       ? DirectShape::Slots
            : byProducts(p) ? DirectShape::Products
            : p.numQueries > 1 && p.d <= kMostDimsOfSeveral
            ? DirectShape::SeveralQueries
            : DirectShape::OneQuery;
}

DirectGroups directGroups(const FlatKnnProblem& p) {
    DirectGroups groups;
    // As many bytes of least entries as of keys of the k groups.
    const double places = double(std::max<idx_t>(directPlaces(p), 1));
    const double group = std::sqrt(2 * places / p.k);
    const double most = places / kLeastGroups;
    while (!bySlots(p) && groups.logUnits < kMostLogUnits &&
           (kDirectUnit << groups.logUnits) < std::min(group, most)) {
        ++groups.logUnits;
    }
    const idx_t width = idx_t(kDirectUnit) << groups.logUnits;
    groups.count = uint32_t((idx_t(places) + width - 1) / width);
    return groups;
}

bool hasFewKeys(const FlatKnnProblem& p, idx_t keys) {
    return p.k <= kMostFewK && keys <= kMostFewKeys &&
            p.numQueries <= p.device.multiprocessors;
}

bool isSpread(const FlatKnnProblem& p, uint32_t groups) {
    return p.k > kMostOfOneBlock &&
            groups >= kLeastSpreadGroups * uint32_t(p.k) &&
            p.numQueries * kSpreadBlocks <= p.device.multiprocessors;
}

bool directMeetsAllKeys(const FlatKnnProblem& p) {
    constexpr idx_t kStaged = 2048; // kDirectStaged
    return !hasFewKeys(p, directPlaces(p)) && directPlaces(p) > kStaged &&
            idx_t(directGroups(p).count) <= p.k;
}

} // namespace faiss_bits
