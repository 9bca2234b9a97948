#include "faiss_bits/many/GpuIndexBitsReplicas.h"

#include <utility>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/many/PartSet.h"

namespace faiss_bits::gpu {

using detail::PartSet;
using detail::requireNotNull;
using detail::withFaissErrors;

namespace {

struct ReplicaSet : PartSet {
    ReplicaSet(const DeviceList& list, const GpuIndexBitsManyConfig& config)
            : PartSet(list, config, "replica") {}
};

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
        : GpuIndexBitsMany(
                  detail::makePartSet<ReplicaSet>(devices, config),
                  dims,
                  metric) {}

GpuIndexBitsReplicas::GpuIndexBitsReplicas(
        const DeviceList& devices,
        const faiss::IndexFlat* index,
        GpuIndexBitsManyConfig config)
        : GpuIndexBitsReplicas(
                  devices,
                  checked(index)->d,
                  checked(index)->metric_type,
                  config) {
    copyFrom_(*index);
}

GpuIndexBitsReplicas::GpuIndexBitsReplicas(
        const DeviceList& devices,
        std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> parts,
        GpuIndexBitsManyConfig config)
        : GpuIndexBitsMany(
                  detail::makePartSet<ReplicaSet>(devices, config),
                  std::move(parts)) {
    const auto& copies = parts_().parts;
    for (size_t i = 1; i < copies.size(); ++i) {
        FAISS_THROW_IF_NOT_FMT(
                copies[i]->ntotal == copies[0]->ntotal,
                "parts[%zu] has %lld vectors, parts[0] %lld",
                i,
                (long long)copies[i]->ntotal,
                (long long)copies[0]->ntotal);
    }
    ntotal = copies[0]->ntotal;
}

GpuIndexBitsReplicas::~GpuIndexBitsReplicas() = default;

void GpuIndexBitsReplicas::addVectors_(
        idx_t n,
        const float* x,
        const idx_t* ids,
        bool onHost) {
    PartSet& set = parts_();
    set.addOrTakeBack([&](int part) { set.addTo(part, n, x, ids, onHost); });
    ntotal = set.parts[0]->ntotal;
}

void GpuIndexBitsReplicas::reconstruct(idx_t key, float* out) const {
    requireParts_();
    withFaissErrors([&] {
        parts_().devices.onPart(
                0, [&] { parts_().parts[0]->reconstruct(key, out); });
    });
}

void GpuIndexBitsReplicas::reconstruct_n(idx_t i0, idx_t n, float* out) const {
    requireParts_();
    withFaissErrors([&] {
        parts_().devices.onPart(
                0, [&] { parts_().parts[0]->reconstruct_n(i0, n, out); });
    });
}

} // namespace faiss_bits::gpu
