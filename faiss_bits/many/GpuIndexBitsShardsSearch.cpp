// Searches of GpuIndexBitsShards.

#include <memory>
#include <optional>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/ivf/IvfSearch.h"
#include "faiss_bits/many/GpuIndexBitsShards.h"
#include "faiss_bits/many/ManyCalls.h"
#include "faiss_bits/many/ManyRange.h"
#include "faiss_bits/many/PartFilters.h"
#include "faiss_bits/many/ShardSet.h"

namespace faiss_bits::gpu {

using detail::CurrentDevice;
using detail::GpuContext;
using detail::Page;
using detail::PagedCall;
using detail::PageLimits;
using detail::PartFilters;
using detail::requireNotNull;
using detail::withFaissErrors;

namespace {

/// What each shard gets for the parameters of a search.
class ShardParameters {
   public:
    ShardParameters(
            const faiss::SearchParameters* params,
            const detail::ShardSet& set)
            : params_(params) {
        if (set.isFlat()) {
            filters_.emplace(params, set.map, set.devices[0].device);
        } else {
            detail::requireNoLimit(params);
        }
    }

    const faiss::SearchParameters* operator()(int shard) const {
        return filters_ ? (*filters_)[shard] : params_;
    }

   private:
    const faiss::SearchParameters* params_;
    std::optional<PartFilters> filters_;
};

} // namespace

void GpuIndexBitsShards::tellShards_() const {
    detail::requireMetricArg(
            detail::requireMetric(metric_type), "metric_arg", metric_arg);
    for (GpuIndexBitsFlat* shard : set_->flat) {
        shard->search_mode = search_mode;
        shard->metric_arg = metric_arg;
    }
}

void GpuIndexBitsShards::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    if (n != 0) {
        requireNotNull(distances, "distances");
    }
    searchPaged_(n, x, k, distances, labels, params);
}

void GpuIndexBitsShards::assign(idx_t n, const float* x, idx_t* labels, idx_t k)
        const {
    searchPaged_(n, x, k, nullptr, labels, nullptr);
}

void GpuIndexBitsShards::searchPaged_(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    withFaissErrors([&] {
        const GpuContext home = set_->devices.context(0);
        detail::requireManySearch(home, n, k);
        tellShards_();
        const ShardParameters shardParams(params, *set_);
        if (n == 0) {
            return;
        }
        requireNotNull(x, "x");
        requireNotNull(labels, "labels");
        const CurrentDevice scope(home.device);
        PagedCall call(home);
        const int queries = call.input("x", x, sizeof(float) * d);
        const int outDistances =
                call.output("distances", distances, sizeof(float) * k);
        const int outLabels = call.output("labels", labels, sizeof(idx_t) * k);
        PageLimits limits;
        limits.rows = n;
        limits.workPerRow =
                detail::manyWork(ntotal, d, k, set_->devices.groups().size());
        call.run(limits, [&](const Page& page) {
            detail::ShardQueries some;
            some.n = page.rows;
            some.x = page.as<const float>(queries);
            some.k = k;
            some.distances = page.as<float>(outDistances);
            some.labels = page.as<idx_t>(outLabels);
            some.params = shardParams;
            some.mayCut = set_->isFlat() && !params &&
                    search_mode == SearchMode::Certified;
            set_->search(
                    home,
                    d,
                    isSimilarity(detail::requireMetric(metric_type)),
                    some);
        });
    });
}

void GpuIndexBitsShards::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    withFaissErrors([&] {
        detail::requireCount(n, "n");
        requireNotNull(result, "result");
        FAISS_THROW_IF_NOT_FMT(
                result->nq == size_t(n),
                "result->nq = %zu, expected n = %lld",
                result->nq,
                (long long)n);
        tellShards_();
        const ShardParameters shardParams(params, *set_);
        if (n == 0) {
            result->do_allocation();
            return;
        }
        requireNotNull(x, "x");
        const detail::QueriesOnHost host(
                set_->devices.context(0), x, size_t(n) * d);
        std::vector<std::unique_ptr<faiss::RangeSearchResult>> found(count());
        set_->devices.onEach([&](int shard) {
            if (shardSize(shard) == 0) {
                return;
            }
            found[shard] = std::make_unique<faiss::RangeSearchResult>(n);
            set_->shards[shard]->range_search(
                    n,
                    host.data(),
                    radius,
                    found[shard].get(),
                    shardParams(shard));
        });
        detail::joinRanges(
                found, set_->isFlat() ? &set_->map : nullptr, result);
    });
}

} // namespace faiss_bits::gpu
