#include "faiss_bits/many/GpuIndexBitsReplicas.h"

#include <utility>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/many/ManyCalls.h"
#include "faiss_bits/many/ReplicaSet.h"

namespace faiss_bits::gpu {

using detail::CurrentDevice;
using detail::GpuContext;
using detail::ReplicaSet;
using detail::requireCount;
using detail::requireNotNull;
using detail::withFaissErrors;

namespace {

std::unique_ptr<ReplicaSet> makeSet(
        const DeviceList& devices,
        const GpuIndexBitsManyConfig& config) {
    detail::requireManyConfig(config);
    return withFaissErrors(
            [&] { return std::make_unique<ReplicaSet>(devices, config); });
}

const faiss::IndexFlat* checked(const faiss::IndexFlat* index) {
    requireNotNull(index, "index");
    return index;
}

} // namespace

GpuIndexBitsReplicas::GpuIndexBitsReplicas(
        const DeviceList& devices,
        int dims,
        faiss::MetricType metric,
        GpuIndexBitsManyConfig config)
        : faiss::Index(dims, metric) {
    detail::requireDims(dims);
    detail::requireMetric(metric);
    set_ = makeSet(devices, config);
    for (int part = 0; part < set_->devices.size(); ++part) {
        set_->devices.onPart(part, [&] {
            const DevicePlace& place = set_->devices[part];
            auto flat = std::make_unique<GpuIndexBitsFlat>(
                    place.resources,
                    dims,
                    metric,
                    detail::flatConfigOf(config, place.device));
            set_->flat.push_back(flat.get());
            set_->replicas.push_back(std::move(flat));
        });
    }
    is_trained = true;
}

GpuIndexBitsReplicas::GpuIndexBitsReplicas(
        const DeviceList& devices,
        const faiss::IndexFlat* index,
        GpuIndexBitsManyConfig config)
        : GpuIndexBitsReplicas(
                  devices,
                  checked(index)->d,
                  checked(index)->metric_type,
                  config) {
    metric_arg = index->metric_arg;
    if (index->ntotal > 0) {
        add(index->ntotal, index->get_xb());
    }
}

GpuIndexBitsReplicas::GpuIndexBitsReplicas(
        const DeviceList& devices,
        std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> parts,
        GpuIndexBitsManyConfig config) {
    set_ = makeSet(devices, config);
    detail::requireParts(devices, parts);
    for (size_t i = 1; i < parts.size(); ++i) {
        FAISS_THROW_IF_NOT_FMT(
                parts[i]->ntotal == parts[0]->ntotal,
                "parts[%zu] has %lld vectors, parts[0] %lld",
                i,
                (long long)parts[i]->ntotal,
                (long long)parts[0]->ntotal);
    }
    ntotal = parts[0]->ntotal;
    d = parts[0]->d;
    metric_type = parts[0]->metric_type;
    metric_arg = parts[0]->metric_arg;
    is_trained = true;
    set_->replicas = std::move(parts);
}

GpuIndexBitsReplicas::~GpuIndexBitsReplicas() = default;

int GpuIndexBitsReplicas::count() const {
    return set_->devices.size();
}

int GpuIndexBitsReplicas::getDevice() const {
    return set_->devices[0].device;
}

std::shared_ptr<faiss::gpu::GpuResources> GpuIndexBitsReplicas::getResources()
        const {
    return set_->devices[0].resources;
}

const faiss::Index* GpuIndexBitsReplicas::at(int replica) const {
    FAISS_THROW_IF_NOT_FMT(
            replica >= 0 && replica < count(),
            "replica = %d is outside 0..%d",
            replica,
            count() - 1);
    return set_->replicas[replica].get();
}

void GpuIndexBitsReplicas::requireFlat_(const char* what) const {
    FAISS_THROW_IF_NOT_FMT(
            !set_->flat.empty(),
            "%s: the replicas are inverted lists, which are filled before they "
            "are copied",
            what);
}

void GpuIndexBitsReplicas::train(idx_t, const float*) {}

void GpuIndexBitsReplicas::add_with_ids(
        idx_t n,
        const float* x,
        const idx_t* ids) {
    FAISS_THROW_IF_NOT_MSG(
            !ids,
            "ids: a flat index numbers its vectors itself and takes none; "
            "IndexIDMap keeps other ids");
    add(n, x);
}

void GpuIndexBitsReplicas::add(idx_t n, const float* x) {
    requireFlat_("add");
    requireCount(n, "n");
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    withFaissErrors([&] { addToAll_(n, x); });
}

void GpuIndexBitsReplicas::addToAll_(idx_t n, const float* x) {
    const auto& devices = set_->devices;
    const GpuContext home = devices.context(0);
    const CurrentDevice scope(home.device);
    const bool onHost = detail::placeOf(home, "x", x).onHost;
    // x on the device has been written on the stream of the first resources.
    if (!onHost) {
        detail::waitFor(home.stream);
    }
    try {
        devices.onEach([&](int part) {
            const GpuContext context = devices.context(part);
            if (onHost || context.device == home.device) {
                set_->flat[part]->add(n, x);
            } else {
                set_->copies->add(
                        devices.groupOf(part),
                        *set_->flat[part],
                        context,
                        home,
                        x,
                        n);
            }
            if (!onHost) {
                detail::waitFor(context.stream); // x is the caller's again
            }
        });
    } catch (...) {
        for (GpuIndexBitsFlat* flat : set_->flat) {
            try {
                flat->truncate(ntotal);
            } catch (const std::exception&) {
                // That of the addition says more: the device has failed.
            }
        }
        throw;
    }
    ntotal += n;
}

void GpuIndexBitsReplicas::reset() {
    withFaissErrors([&] {
        set_->devices.onEach([&](int part) { set_->replicas[part]->reset(); });
    });
    ntotal = 0;
}

void GpuIndexBitsReplicas::reconstruct(idx_t key, float* out) const {
    withFaissErrors([&] {
        set_->devices.onPart(
                0, [&] { set_->replicas[0]->reconstruct(key, out); });
    });
}

void GpuIndexBitsReplicas::reconstruct_n(idx_t i0, idx_t n, float* out) const {
    withFaissErrors([&] {
        set_->devices.onPart(
                0, [&] { set_->replicas[0]->reconstruct_n(i0, n, out); });
    });
}

void GpuIndexBitsReplicas::copyTo(faiss::IndexFlat* index) const {
    requireFlat_("copyTo");
    set_->flat[0]->metric_arg = metric_arg;
    set_->flat[0]->copyTo(index);
    index->metric_arg = metric_arg;
}

} // namespace faiss_bits::gpu
