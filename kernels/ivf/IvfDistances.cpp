#include "kernels/ivf/IvfDistances.h"

#include <cstdint>

#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfPairs.h"
#include "kernels/ivf/WithCoding.h"

namespace faiss_bits {

namespace {

template <Metric kMetric, ListCoding kCoding>
void launchDistances(
        const IvfKnnPlan& plan,
        const IvfKnnProblem& p,
        IvfParams params,
        cudaStream_t stream) {
    if (!plan.listMajor) {
        launchIvfStreams<kMetric, kCoding>(params, ivfLongestList(p), stream);
        return;
    }
    params.lastProbe = params.nprobe;
    launchIvfPairs(
            params,
            kIvfTileQueries,
            plan.wideTiles ? kIvfWideTile : kIvfNarrowTile,
            stream);
    launchIvfTiles<kMetric, kCoding>(
            params, plan.wideTiles, p.device.multiprocessors, stream);
}

} // namespace

IvfParams beginIvfRows(
        const IvfKnnProblem& p,
        const IvfScratch& scratch,
        idx_t first,
        idx_t rows,
        cudaStream_t stream,
        bool* areCounted) {
    IvfParams params = scratch.params;
    params.lists = p.lists;
    params.d = p.lists.d;
    params.queries = p.queries + first * p.lists.d;
    params.probes = p.probes + first * p.nprobe;
    params.rows = uint32_t(rows);
    params.nprobe = uint32_t(p.nprobe);
    params.nearest = scratch.keys;
    params.nearestPlaces = scratch.places;
    params.k = p.k;
    params.centers = p.centroids ? p.centroids : p.lists.decoding.centroids;
    if (areCounted) {
        params.lastProbe = params.nearProbes;
        *areCounted = areIvfPairsCounted(params);
        params.lastProbe = *areCounted ? params.lastProbe : 0;
        clearIvfCounts(params, stream);
    }
    launchIvfColumns(params, stream);
    return params;
}

void beginIvfEstimates(IvfParams& params, Metric metric) {
    constexpr int kPartFloats = 4; // of sixteen bytes
    params.wholeParts = params.d % kPartFloats == 0 &&
            reinterpret_cast<uintptr_t>(params.queries) %
                            (kPartFloats * sizeof(float)) ==
                    0;
    params.bound = ivf_estimate::factorsOf(metric, params.d);
}

void launchIvfFound(
        const IvfKnnProblem& p,
        const IvfParams& params,
        cudaStream_t stream) {
    launchIvfPairs(params, kIvfItemQueries, kIvfEstimateVectors, stream);
    withCoding(p.lists.coding, [&](auto coding) {
        const auto estimate = [&]<Metric kMetric>() {
            launchIvfEstimates<kMetric, coding()>(
                    params, true, p.device.multiprocessors, stream);
        };
        p.metric == Metric::L2
                ? estimate.template operator()<Metric::L2>()
                : estimate.template operator()<Metric::InnerProduct>();
    });
}

void launchIvfFoundDistances(
        const IvfKnnProblem& p,
        IvfRescoreParams& taken,
        cudaStream_t stream) {
    taken.takesAll = true;
    taken.mostOfFew = ivfMostOfFew(p.lists.coding);
    launchIvfGroups(p.lists, taken.firstGroups, stream);
    launchIvfCandidates(taken, stream);
    withCoding(p.lists.coding, [&](auto coding) {
        const auto rescore = [&]<Metric kMetric>() {
            launchIvfRescore<kMetric, coding()>(
                    taken,
                    p.device.blockSharedBytes,
                    p.device.multiprocessors,
                    stream);
        };
        p.metric == Metric::L2
                ? rescore.template operator()<Metric::L2>()
                : rescore.template operator()<Metric::InnerProduct>();
    });
}

void launchIvfDistances(
        const IvfKnnPlan& plan,
        const IvfKnnProblem& p,
        IvfParams params,
        cudaStream_t stream) {
    if (p.mostVectors == 0) {
        return;
    }
    withCoding(p.lists.coding, [&](auto coding) {
        if (p.metric == Metric::L2) {
            launchDistances<Metric::L2, coding()>(plan, p, params, stream);
        } else {
            launchDistances<Metric::InnerProduct, coding()>(
                    plan, p, params, stream);
        }
    });
}

} // namespace faiss_bits
