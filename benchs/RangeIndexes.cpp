#include "benchs/RangeIndexes.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include <cuda_runtime.h>

#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"
#include "faiss_bits/metric_space/GpuIndexBitsListOfClusters.h"
#include "faiss_bits/metric_space/GpuIndexBitsSSS.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/common/Error.h"
#include "kernels/range/boxes/RangeBoxes.h"

namespace faiss_bits::bench {
namespace {

double millisecondsOf(const std::function<void()>& call) {
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
    const auto start = std::chrono::steady_clock::now();
    call();
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
    return std::chrono::duration<double, std::milli>(
                   std::chrono::steady_clock::now() - start)
            .count();
}

template <class Index>
RangeIndex entryOf(
        const std::string& name,
        const RangeVectors& data,
        std::shared_ptr<Index> index) {
    RangeIndex entry;
    entry.name = name;
    entry.search =
            [queries = data.queries, index](
                    int64_t q, float radius, gpu::GpuRangeResult& result) {
                index->rangeSearchOnDevice(q, queries, radius, result);
            };
    return entry;
}

/// With what makes it, which is timed.
template <class Index>
RangeIndex builtEntryOf(
        const std::string& name,
        const std::string& settings,
        const RangeVectors& data,
        std::shared_ptr<Index> index,
        const std::function<void()>& build) {
    std::printf(
            "%s of %lld vectors, %s: being made\n",
            name.c_str(),
            (long long)data.n,
            settings.c_str());
    std::fflush(stdout);
    const double ms = millisecondsOf(build);
    RangeIndex entry = entryOf(name, data, index);
    entry.settings = settings;
    entry.buildMs = ms;
    return entry;
}

/// A metric space's index: vectors are added before.
template <class Index>
RangeIndex metricEntryOf(
        const std::string& name,
        const std::string& settings,
        const RangeVectors& data,
        std::shared_ptr<Index> index) {
    index->add(data.n, data.vectors);
    return builtEntryOf(name, settings, data, index, [&] { index->build(); });
}

RangeIndex flatEntryOf(
        const std::string& name,
        const RangeVectors& data,
        faiss::gpu::GpuResourcesProvider& resources) {
    gpu::GpuIndexBitsFlatConfig config;
    config.keepSearchImage = name == "flat";
    auto index = std::make_shared<gpu::GpuIndexBitsFlat>(
            &resources, data.d, data.metric, config);
    index->add(data.n, data.vectors);
    RangeIndex entry = entryOf(name, data, index);
    if (!config.keepSearchImage) {
        return entry;
    }
    // What the first search takes longer than the others.
    const auto search = [&] {
        gpu::GpuRangeResult result;
        entry.search(kMadeByQueries, data.radius, result);
    };
    for (int i = 0; i < 2; ++i) { // kernels are loaded at the first
        const double first = millisecondsOf(search);
        const double second = millisecondsOf(search);
        if (data.d <= kMostBoxDims) {
            entry.buildMs = std::max(first - second, 0.0);
        }
        if (i == 0) {
            index->reset();
            index->add(data.n, data.vectors);
        }
    }
    return entry;
}

} // namespace

RangeIndex makeRangeIndex(
        const std::string& name,
        const RangeVectors& data,
        const RangeIndexSettings& settings,
        faiss::gpu::GpuResourcesProvider& resources) {
    if (name == "flat" || name == "brute_force") {
        return flatEntryOf(name, data, resources);
    }
    if (name == "ivf_flat") {
        auto index = std::make_shared<gpu::GpuIndexBitsIVFFlat>(
                &resources, data.d, settings.nlist, data.metric);
        index->setNumProbes(settings.nprobe);
        return builtEntryOf(
                name,
                "nlist = " + std::to_string(settings.nlist) +
                        ", nprobe = " + std::to_string(settings.nprobe),
                data,
                index,
                [&] {
                    index->train(data.n, data.vectors);
                    index->add(data.n, data.vectors);
                });
    }
    if (name == "list_of_clusters") {
        const int size = settings.bucketSize > 0
                ? settings.bucketSize
                : int(std::max<int64_t>(64, data.n / 5000));
        return metricEntryOf(
                name,
                "bucketSize = " + std::to_string(size),
                data,
                std::make_shared<gpu::GpuIndexBitsListOfClusters>(
                        &resources, data.d, data.metric, size));
    }
    BITS_THROW_IF_NOT_FMT(
            name == "sss",
            "--indexes %s: known are flat, brute_force, ivf_flat, "
            "list_of_clusters and sss",
            name.c_str());
    return metricEntryOf(
            name,
            "alpha = 0.66",
            data,
            std::make_shared<gpu::GpuIndexBitsSSS>(
                    &resources, data.d, data.metric));
}

} // namespace faiss_bits::bench
