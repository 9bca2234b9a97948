// Searches of GpuIndexBitsReplicas.

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <faiss/IndexIVF.h>

#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"
#include "faiss_bits/ivf/IvfSearch.h"
#include "faiss_bits/many/GpuIndexBitsReplicas.h"
#include "faiss_bits/many/ManyCalls.h"
#include "faiss_bits/many/ManyRange.h"
#include "faiss_bits/many/PartFilters.h"
#include "faiss_bits/many/PeerAccess.h"
#include "faiss_bits/many/SlicedSearch.h"

namespace faiss_bits::gpu {

using detail::CallArray;
using detail::GpuContext;
using detail::PartFilters;
using detail::PartSet;
using detail::sliceBegin;

namespace {

/// Seconds that one more query takes a replica, about: what tells how many
/// another device's copies cost (H100; 10,240 queries of 2^20 x 128 vectors,
/// k = 10, 100 and 2000: 0.47, 0.59 and 1.7 us; of 1,024 lists of these, nprobe
/// = 32: 0.17 and 0.23). 0 where nothing is known.
double secondsPerQuery(
        const PartSet& set,
        idx_t ntotal,
        idx_t k,
        const faiss::SearchParameters* params) {
    constexpr double kFlatSpeed = 2.8e14; // multiply-adds a second
    constexpr double kListsSpeed = 2.6e13;
    constexpr double kFlatResult = 0.6e-9;
    constexpr double kListsResult = 0.75e-9;
    const faiss::gpu::GpuIndex& first = *set.parts[0];
    if (set.isFlat()) {
        const bool isFast = first.metric_type == faiss::METRIC_L2 ||
                first.metric_type == faiss::METRIC_INNER_PRODUCT;
        return isFast && !params ? double(ntotal) * first.d / kFlatSpeed +
                        double(k) * kFlatResult
                                 : 0;
    }
    const auto* lists = dynamic_cast<const GpuIndexBitsIVFFlat*>(&first);
    if (!lists || (params && params->sel)) {
        return 0;
    }
    const auto* probes =
            dynamic_cast<const faiss::SearchParametersIVF*>(params);
    const double share =
            double(probes ? probes->nprobe : size_t(lists->nprobe)) /
            double(lists->nlist);
    return std::min(share, 1.0) * double(ntotal) * first.d / kListsSpeed +
            double(k) * kListsResult;
}

/// By the thread of the group; the current device is the group's.
detail::GroupReach reachOf(
        const PartSet& set,
        int group,
        const float* x,
        const float* distances,
        const idx_t* labels) {
    const int part = set.devices.groups()[group].lanes[0];
    return {detail::canUse(x), set.canWriteHome(part, {distances, labels})};
}

} // namespace

GpuIndexBitsReplicas::PartParameters_ GpuIndexBitsReplicas::parametersOf_(
        const faiss::SearchParameters* params) const {
    const PartSet& set = parts_();
    if (!set.isFlat()) {
        detail::requireNoLimit(params);
        return [params](int) { return params; };
    }
    const auto filters = std::make_shared<PartFilters>(
            params,
            set.devices.size(),
            ntotal,
            set.devices[0].device,
            set.devices.groups().size() == 1);
    return [filters](int part) { return (*filters)[part]; };
}

void GpuIndexBitsReplicas::searchParts_(
        const GpuContext& home,
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const PartParameters_& parameters,
        bool isFiltered) const {
    const CallArray queries(home, "x", x, sizeof(float) * d);
    const size_t groups = parts_().devices.groups().size();
    std::vector<detail::GroupReach> reach;
    std::optional<detail::ManyDevices::Early> early;
    // The other threads ask the driver what they can use while this one finds
    // out who searches what. Of a few queries they search none.
    if (!queries.onHost && groups > 1 &&
        n >= idx_t(groups) * detail::GroupSpeeds::kLeastRows) {
        reach.resize(groups);
        early.emplace(parts_().devices, [&](int group) {
            reach[group] = reachOf(parts_(), group, x, distances, labels);
        });
    }
    const detail::CallArrays arrays = {
            queries,
            CallArray(home, "distances", distances, sizeof(float) * k),
            CallArray(home, "labels", labels, sizeof(idx_t) * k)};
    if (early && !arrays.areOnDevice()) {
        early.reset();
    }
    detail::SlicedSearch search(
            parts_(),
            home,
            n,
            k,
            detail::manyWork(ntotal, d, k, 1),
            secondsPerQuery(parts_(), ntotal, k, parameters(0)),
            arrays,
            parameters,
            isFiltered);
    search.run(early ? &*early : nullptr, reach);
}

void GpuIndexBitsReplicas::rangeSearchParts_(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const PartParameters_& parameters) const {
    const PartSet& set = parts_();
    std::vector<std::unique_ptr<detail::RangePieces>> found(count());
    set.devices.onEach([&](int part) {
        const idx_t first = sliceBegin(n, count(), part);
        const idx_t rows = sliceBegin(n, count(), part + 1) - first;
        if (rows == 0) {
            return;
        }
        found[part] = std::make_unique<detail::RangePieces>(rows);
        set.parts[part]->range_search(
                rows,
                x + first * d,
                radius,
                found[part].get(),
                parameters(part));
    });
    detail::joinSlices(found, result);
}

} // namespace faiss_bits::gpu
