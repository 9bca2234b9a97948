#include "benchs/many/FaissMany.h"

#include <faiss/IndexReplicas.h>
#include <faiss/IndexShards.h>
#include <faiss/gpu/GpuCloner.h>
#include <faiss/gpu/GpuIndexFlat.h>

#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/many/GpuIndexBitsReplicas.h"
#include "faiss_bits/many/GpuIndexBitsShards.h"

namespace faiss_bits::bench {

namespace {

/// A container over parts, each searched by a thread of its own.
std::unique_ptr<faiss::Index> containerOf(
        bool split,
        bool isFlat,
        int d,
        const std::vector<faiss::Index*>& parts) {
    if (split) {
        // The numbers of flat shards are to go on; others have ids.
        auto shards = std::make_unique<faiss::IndexShards>(d, true, isFlat);
        for (faiss::Index* part : parts) {
            shards->add_shard(part);
        }
        return shards;
    }
    auto replicas = std::make_unique<faiss::IndexReplicas>(d, true);
    for (faiss::Index* part : parts) {
        replicas->add_replica(part);
    }
    return replicas;
}

} // namespace

FaissMany faissOverParts(const faiss::Index& ours) {
    const auto* shards = dynamic_cast<const gpu::GpuIndexBitsShards*>(&ours);
    const auto* replicas =
            dynamic_cast<const gpu::GpuIndexBitsReplicas*>(&ours);
    std::vector<faiss::Index*> parts;
    const int count = shards ? shards->count() : replicas->count();
    for (int i = 0; i < count; ++i) {
        parts.push_back(const_cast<faiss::Index*>(
                shards ? shards->at(i) : replicas->at(i)));
    }
    FaissMany made;
    const bool isFlat =
            dynamic_cast<const gpu::GpuIndexBitsFlat*>(parts.front());
    made.index = containerOf(shards, isFlat, ours.d, parts);
    return made;
}

DeviceShare deviceShareOf(const faiss::Index& ours) {
    if (const auto* replicas =
                dynamic_cast<const gpu::GpuIndexBitsReplicas*>(&ours)) {
        return {replicas->at(0), true};
    }
    return {dynamic_cast<const gpu::GpuIndexBitsShards&>(ours).at(0), false};
}

FaissMany faissOverFlat(
        bool split,
        const gpu::DeviceList& places,
        const std::vector<std::unique_ptr<faiss::gpu::StandardGpuResources>>&
                resources,
        int d,
        const float* vectors,
        int64_t n) {
    FaissMany made;
    std::vector<faiss::Index*> parts;
    const int64_t count = int64_t(places.size());
    for (int64_t i = 0; i < count; ++i) {
        faiss::gpu::GpuIndexFlatConfig config;
        config.device = places[i].device;
        auto one = std::make_unique<faiss::gpu::GpuIndexFlat>(
                resources[i].get(), d, faiss::METRIC_L2, config);
        const int64_t begin = split ? n * i / count : 0;
        const int64_t end = split ? n * (i + 1) / count : n;
        one->add(end - begin, vectors + begin * d);
        parts.push_back(one.get());
        made.owned.push_back(std::move(one));
    }
    made.index = containerOf(split, true, d, parts);
    return made;
}

FaissMany faissOverLists(
        bool split,
        const gpu::DeviceList& places,
        const std::vector<std::unique_ptr<faiss::gpu::StandardGpuResources>>&
                resources,
        const faiss::IndexIVFFlat& index) {
    std::vector<faiss::gpu::GpuResourcesProvider*> providers;
    std::vector<int> devices;
    for (size_t i = 0; i < places.size(); ++i) {
        providers.push_back(resources[i].get());
        devices.push_back(places[i].device);
    }
    faiss::gpu::GpuMultipleClonerOptions options;
    options.shard = split;
    FaissMany made;
    made.index.reset(faiss::gpu::index_cpu_to_gpu_multiple(
            providers, devices, &index, &options));
    return made;
}

} // namespace faiss_bits::bench
