#include "faiss_bits/many/PartSet.h"

#include <utility>

#include <faiss/impl/FaissAssert.h>

namespace faiss_bits::gpu::detail {

namespace {

GpuIndexBitsFlatConfig flatConfigOf(
        const GpuIndexBitsManyConfig& config,
        int device) {
    GpuIndexBitsFlatConfig flat;
    flat.device = device;
    flat.useFloat16 = config.useFloat16;
    flat.useBFloat16 = config.useBFloat16;
    flat.keepSearchImage = config.keepSearchImage;
    return flat;
}

} // namespace

PartSet::PartSet(
        const DeviceList& list,
        const GpuIndexBitsManyConfig& config,
        const char* kind)
        : config(config),
          devices(list, config, kind),
          copies(std::make_unique<DeviceCopies>(devices, config)) {}

PartSet::~PartSet() = default;

void PartSet::makeFlat(int dims, faiss::MetricType metric) {
    for (int part = 0; part < devices.size(); ++part) {
        devices.onPart(part, [&] {
            const DevicePlace& place = devices[part];
            auto index = std::make_unique<GpuIndexBitsFlat>(
                    place.resources,
                    dims,
                    metric,
                    flatConfigOf(config, place.device));
            flat.push_back(index.get());
            parts.push_back(std::move(index));
        });
    }
}

void PartSet::take(std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> given) {
    FAISS_THROW_IF_NOT_FMT(
            int(given.size()) == devices.size(),
            "parts has %zu entries, and devices %d",
            given.size(),
            devices.size());
    for (size_t i = 0; i < given.size(); ++i) {
        FAISS_THROW_IF_NOT_FMT(given[i], "parts[%zu] is a null pointer", i);
        FAISS_THROW_IF_NOT_FMT(
                given[i]->d == given[0]->d &&
                        given[i]->metric_type == given[0]->metric_type,
                "parts[%zu] has d = %d and metric = %d, parts[0] %d and %d",
                i,
                int(given[i]->d),
                int(given[i]->metric_type),
                int(given[0]->d),
                int(given[0]->metric_type));
        FAISS_THROW_IF_NOT_FMT(
                given[i]->getDevice() == devices[int(i)].device,
                "parts[%zu] is on device %d, and devices[%zu] is %d",
                i,
                given[i]->getDevice(),
                i,
                devices[int(i)].device);
        FAISS_THROW_IF_NOT_FMT(
                given[i]->is_trained, "parts[%zu] is not trained", i);
    }
    parts = std::move(given);
}

void PartSet::addOrTakeBack(const std::function<void(int part)>& f) {
    std::vector<idx_t> before;
    for (const GpuIndexBitsFlat* index : flat) {
        before.push_back(index->ntotal);
    }
    try {
        devices.onEach(f);
    } catch (...) {
        for (size_t i = 0; i < flat.size(); ++i) {
            try {
                flat[i]->truncate(before[i]);
            } catch (const std::exception&) {
                // That of the addition says more: the device has failed.
            }
        }
        throw;
    }
}

void PartSet::addTo(int part, idx_t n, const float* x, bool onHost) {
    const GpuContext context = devices.context(part);
    const GpuContext home = devices.context(0);
    if (onHost || context.device == home.device) {
        flat[part]->add(n, x);
    } else {
        copies->add(devices.groupOf(part), *flat[part], context, home, x, n);
    }
    if (!onHost) {
        waitFor(context.stream); // x is the caller's again
    }
}

} // namespace faiss_bits::gpu::detail
