#include "faiss_bits/many/GpuIndexBitsMany.h"

#include <utility>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/many/ManyRange.h"
#include "faiss_bits/many/PartSet.h"
#include "faiss_bits/range/RangeCall.h"
#include "faiss_bits/range/RangeResults.h"

namespace faiss_bits::gpu {

using detail::CurrentDevice;
using detail::GpuContext;
using detail::requireNotNull;
using detail::waitFor;
using detail::withFaissErrors;
using faiss_bits::detail::requireCount;

namespace {

faiss::MetricType checked(faiss::MetricType metric) {
    detail::requireMetric(metric);
    return metric;
}

void requireNoCapture(const GpuContext& home) {
    FAISS_THROW_IF_NOT_MSG(
            !detail::isCaptured(home.stream),
            "the stream is being captured into a CUDA graph: an index on "
            "several devices cannot be");
}

} // namespace

GpuIndexBitsMany::GpuIndexBitsMany(
        std::unique_ptr<detail::PartSet> set,
        int dims,
        faiss::MetricType metric)
        : faiss::Index(detail::requirePositive(dims, "dims"), checked(metric)),
          set_(std::move(set)) {
    set_->makeFlat(dims, metric);
    is_trained = true;
}

GpuIndexBitsMany::GpuIndexBitsMany(
        std::unique_ptr<detail::PartSet> set,
        std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> parts)
        : set_(std::move(set)) {
    set_->take(std::move(parts));
    const faiss::gpu::GpuIndex& first = *set_->parts[0];
    d = first.d;
    metric_type = first.metric_type;
    metric_arg = first.metric_arg;
    is_trained = first.is_trained;
}

GpuIndexBitsMany::~GpuIndexBitsMany() = default;

void GpuIndexBitsMany::copyFrom_(const faiss::IndexFlat& index) {
    metric_arg = index.metric_arg;
    if (index.ntotal > 0) {
        add(index.ntotal, index.get_xb());
    }
}

int GpuIndexBitsMany::count() const {
    return set_->devices.size();
}

int GpuIndexBitsMany::getDevice() const {
    return set_->devices[0].device;
}

std::shared_ptr<faiss::gpu::GpuResources> GpuIndexBitsMany::getResources()
        const {
    return set_->devices[0].resources;
}

const faiss::Index* GpuIndexBitsMany::at(int part) const {
    detail::requireWithin(part, 0, count() - 1, set_->devices.kind().c_str());
    requireParts_();
    return set_->parts[part].get();
}

void GpuIndexBitsMany::requireFlat_(const char* what) const {
    FAISS_THROW_IF_NOT_FMT(
            set_->isFlat(),
            "%s: each %s is inverted lists, which have ids of their own",
            what,
            set_->devices.kind().c_str());
}

void GpuIndexBitsMany::tellParts_() const {
    detail::requireMetricArg(
            detail::requireMetric(metric_type), "metric_arg", metric_arg);
    for (GpuIndexBitsFlat* part : set_->flat) {
        part->search_mode = search_mode;
        part->metric_arg = metric_arg;
    }
}

void GpuIndexBitsMany::requireParts_() const {
    FAISS_THROW_IF_NOT_MSG(
            !isHalfReset_,
            "a reset() of the index has failed: call it again before any "
            "other use");
}

void GpuIndexBitsMany::train(idx_t n, const float* x) {
    requireParts_();
    if (is_trained) {
        return;
    }
    requireCount(n, "n");
    requireNotNull(x, "x");
    set_->requireOurs("train");
    withFaissErrors([&] {
        const GpuContext home = set_->devices.context(0);
        requireNoCapture(home);
        if (!detail::placeOf(home, "x", x).onHost) {
            waitFor(home.stream);
        }
        set_->train(n, x);
    });
    is_trained = true;
}

void GpuIndexBitsMany::add(idx_t n, const float* x) {
    add_with_ids(n, x, nullptr);
}

void GpuIndexBitsMany::add_with_ids(idx_t n, const float* x, const idx_t* ids) {
    FAISS_THROW_IF_NOT_MSG(
            !ids || !set_->isFlat(),
            "ids: a flat index numbers its vectors itself and takes none; "
            "IndexIDMap keeps other ids");
    requireCount(n, "n");
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireParts_();
    set_->requireOurs("add");
    FAISS_THROW_IF_NOT_MSG(is_trained, "the index is not trained");
    withFaissErrors([&] {
        const GpuContext home = set_->devices.context(0);
        requireNoCapture(home);
        const CurrentDevice scope(home.device);
        const bool onHost = detail::placeOf(home, "x", x).onHost;
        std::vector<idx_t> copy;
        if (ids && !detail::placeOf(home, "ids", ids).onHost) {
            copy.resize(size_t(n));
            detail::copyOut(home, ids, "ids", copy.data(), n * sizeof(idx_t));
            ids = copy.data();
        }
        // x on the device has been written on the stream of the first
        // resources.
        if (!onHost) {
            waitFor(home.stream);
        }
        addVectors_(n, x, ids, onHost);
    });
}

void GpuIndexBitsMany::reset() {
    withFaissErrors([&] {
        // What can fail does so before anything is changed.
        set_->devices.onEach([&](int part) {
            requireNoCapture(set_->devices.context(part));
        });
        set_->devices.onEach(
                [&](int part) { waitFor(set_->devices.context(part).stream); });
        isHalfReset_ = true;
        ntotal = 0;
        wasReset_();
        set_->devices.onEach([&](int part) { set_->parts[part]->reset(); });
        isHalfReset_ = false;
    });
}

void GpuIndexBitsMany::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    if (n != 0) {
        requireNotNull(distances, "distances");
    }
    searchChecked_(n, x, k, distances, labels, params);
}

void GpuIndexBitsMany::assign(idx_t n, const float* x, idx_t* labels, idx_t k)
        const {
    searchChecked_(n, x, k, nullptr, labels, nullptr);
}

void GpuIndexBitsMany::searchChecked_(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    withFaissErrors([&] {
        const GpuContext home = set_->devices.context(0);
        requireCount(n, "n");
        detail::requireWithin(k, 1, kMaxK, "k");
        requireNoCapture(home);
        requireParts_();
        FAISS_THROW_IF_NOT_MSG(is_trained, "the index is not trained");
        tellParts_();
        const PartParameters_ parameters = parametersOf_(params);
        if (n == 0) {
            return;
        }
        requireNotNull(x, "x");
        requireNotNull(labels, "labels");
        const CurrentDevice scope(home.device);
        searchParts_(
                home,
                n,
                x,
                k,
                distances,
                labels,
                parameters,
                params != nullptr);
    });
}

void GpuIndexBitsMany::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    withFaissErrors([&] {
        const GpuContext home = set_->devices.context(0);
        requireCount(n, "n");
        detail::requireRange(radius, 0);
        detail::requireRangeResult(result, n);
        requireNoCapture(home);
        requireParts_();
        FAISS_THROW_IF_NOT_MSG(is_trained, "the index is not trained");
        tellParts_();
        const PartParameters_ parameters = parametersOf_(params);
        if (n == 0) {
            result->do_allocation();
            return;
        }
        requireNotNull(x, "x");
        const detail::QueriesOnHost host(home, x, size_t(n) * d);
        rangeSearchParts_(n, host.data(), radius, result, parameters);
    });
}

void GpuIndexBitsMany::copyTo(faiss::IndexFlat* index) const {
    requireFlat_("copyTo");
    requireParts_();
    requireNotNull(index, "index");
    std::vector<float> vectors(size_t(ntotal) * d);
    reconstruct_n(0, ntotal, vectors.data());
    faiss::IndexFlat copy(d, metric_type);
    copy.metric_arg = metric_arg;
    copy.add(ntotal, vectors.data());
    *index = std::move(copy);
}

} // namespace faiss_bits::gpu
