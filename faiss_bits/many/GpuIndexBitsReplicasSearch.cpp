// Searches of GpuIndexBitsReplicas.

#include <memory>
#include <vector>

#include "faiss_bits/ivf/IvfSearch.h"
#include "faiss_bits/many/GpuIndexBitsReplicas.h"
#include "faiss_bits/many/ManyCalls.h"
#include "faiss_bits/many/ManyRange.h"
#include "faiss_bits/many/PartFilters.h"
#include "faiss_bits/many/SlicedSearch.h"

namespace faiss_bits::gpu {

using detail::CallArray;
using detail::GpuContext;
using detail::PartFilters;
using detail::PartSet;
using detail::sliceBegin;

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
    const detail::SlicedSearch::Arrays arrays = {
            CallArray(home, "x", x, sizeof(float) * d),
            CallArray(home, "distances", distances, sizeof(float) * k),
            CallArray(home, "labels", labels, sizeof(idx_t) * k)};
    detail::SlicedSearch search(
            parts_(),
            home,
            n,
            k,
            detail::manyWork(ntotal, d, k, 1),
            arrays,
            parameters,
            isFiltered);
    search.run();
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
