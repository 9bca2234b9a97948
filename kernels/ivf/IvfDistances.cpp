#include "kernels/ivf/IvfDistances.h"

#include <type_traits>

namespace faiss_bits {

namespace {

/// Calls body(constant) with the coding as a constant.
template <class Body>
void withCoding(ListCoding coding, const Body& body) {
    const auto call = [&]<ListCoding kCoding>() {
        body(std::integral_constant<ListCoding, kCoding>());
    };
    switch (coding) {
        case ListCoding::Float32:
            return call.template operator()<ListCoding::Float32>();
        case ListCoding::Float16:
            return call.template operator()<ListCoding::Float16>();
        case ListCoding::Scalar8:
            return call.template operator()<ListCoding::Scalar8>();
        case ListCoding::Scalar6:
            return call.template operator()<ListCoding::Scalar6>();
        case ListCoding::Scalar4:
            return call.template operator()<ListCoding::Scalar4>();
        case ListCoding::Product:
            return call.template operator()<ListCoding::Product>();
    }
}

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
            params, plan.wideTiles ? kIvfWideTile : kIvfNarrowTile, stream);
    launchIvfTiles<kMetric, kCoding>(
            params, plan.wideTiles, p.device.multiprocessors, stream);
}

} // namespace

IvfParams beginIvfRows(
        const IvfKnnProblem& p,
        const IvfScratch& scratch,
        idx_t first,
        idx_t rows,
        cudaStream_t stream) {
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
    launchIvfColumns(params, stream);
    return params;
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
