#include "kernels/cpu/RangeSample.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace faiss_bits::cpu {

namespace {

/// Of pairs spread over all: the share with a key under the limit, or at it,
/// which makes a candidate too.
template <class T>
double shareUnder(
        const Setup<T>& setup,
        const CanonicalKernels<T>& kernels,
        T limit) {
    constexpr idx_t kMostQueries = 8, kMostVectors = 16;
    constexpr idx_t kPart = 32; // of all pairs, so that it takes little
    const idx_t q = setup.numQueries, n = setup.numVectors;
    const idx_t numVectors = std::min(n, kMostVectors);
    const idx_t numQueries = std::clamp<idx_t>(
            q * n / (kPart * numVectors), 1, std::min(q, kMostQueries));
    const idx_t stride = roundUp(setup.depth, kCanonicalSlots);
    AlignedBuffer<double> components(stride * numQueries);
    CandidateId<T> ids[kMostVectors];
    T keys[kMostQueries * kMostVectors];
    for (idx_t i = 0; i < numVectors; ++i) {
        ids[i] = CandidateId<T>(i * n / numVectors);
    }
    RescoreList<T> lists[kMostQueries];
    for (idx_t i = 0; i < numQueries; ++i) {
        RescoreList<T>& list = lists[i];
        list.query.components = components.get() + i * stride;
        kernels.prepareQuery(
                setup.queries.row(i * q / numQueries), setup.depth, list.query);
        list.ids = ids;
        list.count = numVectors;
        list.keys = keys + i * numVectors;
    }
    RescoreJob<T> job;
    job.lists = lists;
    job.numLists = numQueries;
    job.vectors = setup.vectors;
    job.depth = setup.depth;
    job.power = double(setup.power);
    kernels.rescore(job);
    const idx_t pairs = numQueries * numVectors;
    const auto under = std::count_if(
            keys, keys + pairs, [&](T key) { return key <= limit; });
    // Not none for none: a sample has few.
    return (double(under) + 0.1) / double(pairs);
}

} // namespace

template <class T>
bool areManyInRange(
        const Setup<T>& setup,
        const CanonicalKernels<T>& kernels,
        T limit) {
    const double share = shareUnder(setup, kernels, limit);
    if (!std::is_same_v<T, float> ||
        (setup.metric != KernelMetric::L2 &&
         setup.metric != KernelMetric::Product)) {
        return share > 0.125;
    }
    // Nanoseconds of a query: what products in float64, and keys that are
    // stored first, take more than those in float32, and what the candidates do
    // (docs/design/cpu_range.md).
    const double n = double(setup.numVectors), d = setup.depth;
    const double ofComponent = kernels.prefersAllPairs ? 0.22 : 0.1;
    const double tile = setup.common.tileVectors;
    const double pairs = std::ceil(n / tile) * tile;
    return pairs * (0.4 + 0.02 * d) <
            90 + share * n * (8 + ofComponent * std::max(d, 8.0));
}

template bool areManyInRange(
        const Setup<float>&,
        const CanonicalKernels<float>&,
        float);
template bool areManyInRange(
        const Setup<double>&,
        const CanonicalKernels<double>&,
        double);

} // namespace faiss_bits::cpu
