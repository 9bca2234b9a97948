#include "faiss_bits/metric_space/IndexMetricSpace.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissErrors.h"
#include "faiss_bits/common/RangeArguments.h"
#include "faiss_bits/metric_space/MetricContents.h"
#include "kernels/metric_space/cpu/Build.h"
#include "kernels/metric_space/cpu/Search.h"

namespace faiss_bits {

using detail::MetricContents;
using detail::MetricIndexKind;
using detail::requireNotNull;
using detail::withFaissErrors;

namespace {

/// The vectors in the order of the index.
std::vector<float> orderedVectors(const MetricContents& c) {
    return metric_space::orderedRows(
            c.view(),
            c.kind == MetricIndexKind::ListOfClusters ? c.list.members
                                                      : c.table.order);
}

void throwIfInterrupted() {
    if (faiss::InterruptCallback::is_interrupted()) {
        FAISS_THROW_MSG("computation interrupted");
    }
}

} // namespace

struct IndexMetricSpace::State {
    MetricContents contents;
    std::vector<float> ordered; // the vectors as the index has them
    std::mutex building;        // searches at the same time make it once
    std::atomic<uint64_t> distances{0};

    void forgetIndex() {
        contents.isBuilt = false;
        contents.list = {};
        contents.table = {};
        ordered = {};
    }
};

IndexMetricSpace::IndexMetricSpace(MetricContents contents)
        : faiss::Index(contents.d, detail::faissMetricOf(contents.metric)),
          state_(std::make_unique<State>()) {
    state_->contents = std::move(contents);
}

IndexMetricSpace::~IndexMetricSpace() = default;

const MetricContents& IndexMetricSpace::contents_() const {
    return state_->contents;
}

void IndexMetricSpace::setContents_(MetricContents contents) {
    FAISS_THROW_IF_NOT_MSG(
            contents.kind == state_->contents.kind,
            "contents are of another kind of index");
    if (contents.isBuilt && contents.kind == MetricIndexKind::Sss &&
        contents.table.distances.empty()) {
        metric_space::fillPivotDistances(
                contents.view(), contents.table, 0, throwIfInterrupted);
    }
    std::vector<float> ordered;
    if (contents.isBuilt) {
        ordered = orderedVectors(contents);
    }
    d = contents.d;
    metric_type = detail::faissMetricOf(contents.metric);
    ntotal = contents.n;
    state_->contents = std::move(contents);
    state_->ordered = std::move(ordered);
}

void IndexMetricSpace::add(idx_t n, const float* x) {
    detail::requireRoomFor(ntotal, n, x);
    if (n == 0) {
        return;
    }
    MetricContents& c = state_->contents;
    c.vectors.insert(c.vectors.end(), x, x + n * d);
    state_->forgetIndex();
    c.n += n;
    ntotal = c.n;
}

void IndexMetricSpace::reset() {
    MetricContents& c = state_->contents;
    c.vectors.clear();
    state_->forgetIndex();
    c.n = 0;
    ntotal = 0;
}

void IndexMetricSpace::build_() const {
    const std::lock_guard<std::mutex> lock(state_->building);
    MetricContents& c = state_->contents;
    if (c.isBuilt) {
        return;
    }
    withFaissErrors([&] {
        if (c.kind == MetricIndexKind::ListOfClusters) {
            c.list = metric_space::buildListOfClusters(
                    c.view(), c.listOptions, 0, throwIfInterrupted);
        } else {
            c.table = metric_space::buildPivotTable(
                    c.view(), c.pivotOptions, 0, throwIfInterrupted);
        }
        state_->ordered = orderedVectors(c);
    });
    c.isBuilt = true;
}

void IndexMetricSpace::build() {
    build_();
}

bool IndexMetricSpace::isBuilt() const {
    const std::lock_guard<std::mutex> lock(state_->building);
    return state_->contents.isBuilt;
}

void IndexMetricSpace::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    detail::requireCount(n, "n");
    detail::requirePositive(k, "k");
    detail::requireNoFilter(params);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(distances, "distances");
    requireNotNull(labels, "labels");
    build_();
    const MetricContents& c = state_->contents;
    metric_space::MetricCounters counters;
    metric_space::CpuSearch search{
            c.view(),
            state_->ordered.data(),
            n,
            x,
            0,
            &counters,
            throwIfInterrupted};
    withFaissErrors([&] {
        if (c.kind == MetricIndexKind::ListOfClusters) {
            metric_space::knnSearch(search, c.list, k, distances, labels);
        } else {
            metric_space::knnSearch(search, c.table, k, distances, labels);
        }
    });
    state_->distances += counters.distances;
}

void IndexMetricSpace::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    detail::requireRange(n, x, radius, result);
    detail::requireNoFilter(params);
    build_();
    const MetricContents& c = state_->contents;
    metric_space::MetricCounters counters;
    metric_space::CpuSearch search{
            c.view(),
            state_->ordered.data(),
            n,
            x,
            0,
            &counters,
            throwIfInterrupted};
    const auto found = withFaissErrors([&] {
        return c.kind == MetricIndexKind::ListOfClusters
                ? metric_space::rangeSearch(search, c.list, radius)
                : metric_space::rangeSearch(search, c.table, radius);
    });
    state_->distances += counters.distances;
    for (idx_t q = 0; q < n; ++q) {
        result->lims[q] = size_t(found.limits[q + 1] - found.limits[q]);
    }
    result->do_allocation(); // makes limits of the counts
    std::copy(
            found.distances.begin(), found.distances.end(), result->distances);
    std::copy(found.ids.begin(), found.ids.end(), result->labels);
}

void IndexMetricSpace::reconstruct(idx_t key, float* recons) const {
    detail::requireKey(key, ntotal);
    requireNotNull(recons, "recons");
    std::copy_n(contents_().vectors.data() + key * d, d, recons);
}

void IndexMetricSpace::reconstruct_n(idx_t i0, idx_t ni, float* recons) const {
    detail::requireRun(i0, ni, ntotal, "ni");
    if (ni > 0) {
        requireNotNull(recons, "recons");
        std::copy_n(contents_().vectors.data() + i0 * d, ni * d, recons);
    }
}

uint64_t IndexMetricSpace::numDistances() const {
    return state_->distances;
}

void IndexMetricSpace::resetDistances() {
    state_->distances = 0;
}

void IndexMetricSpace::write(const char* fname) const {
    const std::lock_guard<std::mutex> lock(state_->building);
    detail::writeMetricFile(fname, contents_());
}

void IndexMetricSpace::read(const char* fname) {
    setContents_(detail::readMetricFile(fname, contents_().kind));
}

} // namespace faiss_bits
