// Searches of GpuIndexBitsShards.

#include <memory>
#include <vector>

#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/ivf/IvfSearch.h"
#include "faiss_bits/many/GpuIndexBitsShards.h"
#include "faiss_bits/many/HostShards.h"
#include "faiss_bits/many/ManyCalls.h"
#include "faiss_bits/many/ManyRange.h"
#include "faiss_bits/many/PartFilters.h"
#include "faiss_bits/many/ShardSet.h"

namespace faiss_bits::gpu {

using detail::GpuContext;
using detail::Page;
using detail::PagedCall;
using detail::PageLimits;
using detail::PartFilters;
using detail::ShardSet;

GpuIndexBitsShards::PartParameters_ GpuIndexBitsShards::parametersOf_(
        const faiss::SearchParameters* params) const {
    const ShardSet& set = shards_();
    if (!set.isFlat()) {
        detail::requireNoLimit(params);
        return [params](int) { return params; };
    }
    const auto filters = std::make_shared<PartFilters>(
            params, set.map, set.devices[0].device);
    return [filters](int shard) { return (*filters)[shard]; };
}

void GpuIndexBitsShards::searchParts_(
        const GpuContext& home,
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const PartParameters_& parameters,
        bool isFiltered) const {
    const ShardSet& set = shards_();
    const bool largest = isSimilarity(detail::requireMetric(metric_type));
    detail::ShardQueries all;
    all.n = n;
    all.x = x;
    all.k = k;
    all.distances = distances;
    all.labels = labels;
    all.params = parameters;
    // Flat shards get bits of their own with any parameters.
    const faiss::SearchParameters* const given =
            set.isFlat() ? nullptr : parameters(0);
    const bool isSelected = set.isFlat() ? isFiltered : given && given->sel;
    all.mayCut = !isSelected && set.areCanonical();
    const double workPerRow =
            detail::manyWork(ntotal, d, k, set.devices.groups().size());
    if (detail::goesByHost(set, home, all, workPerRow)) {
        detail::searchByHost(set, largest, all);
        return;
    }
    PagedCall call(home);
    const int queries = call.input("x", x, sizeof(float) * d);
    const int outDistances =
            call.output("distances", distances, sizeof(float) * k);
    const int outLabels = call.output("labels", labels, sizeof(idx_t) * k);
    PageLimits limits;
    limits.rows = n;
    limits.workPerRow = workPerRow;
    // Of large k a page of the usual staging has so few queries that shards
    // gain nothing by a common sample, and wait for each other as often. Where
    // temporary memory is short it is left to the search.
    constexpr size_t kMuch = 4 * detail::kPageBytes;
    if (home.resources->getTempMemoryAvailable(home.device) >= 8 * kMuch) {
        limits.mostStaging = kMuch;
    }
    limits.waits = true; // for the queries to search again
    call.run(limits, [&](const Page& page) {
        detail::ShardQueries some = all;
        some.n = page.rows;
        some.x = page.as<const float>(queries);
        some.distances = page.as<float>(outDistances);
        some.labels = page.as<idx_t>(outLabels);
        set.search(home, d, largest, some);
    });
}

void GpuIndexBitsShards::rangeSearchParts_(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const PartParameters_& parameters) const {
    const ShardSet& set = shards_();
    std::vector<std::unique_ptr<detail::RangePieces>> found(count());
    set.devices.onEach([&](int shard) {
        if (shardSize(shard) == 0) {
            return;
        }
        found[shard] = std::make_unique<detail::RangePieces>(n);
        set.parts[shard]->range_search(
                n, x, radius, found[shard].get(), parameters(shard));
    });
    detail::joinRanges(found, set.isFlat() ? &set.map : nullptr, result);
}

} // namespace faiss_bits::gpu
