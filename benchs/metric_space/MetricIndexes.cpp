#include "benchs/metric_space/MetricIndexes.h"

#include <chrono>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Error.h"
#include "kernels/metric_space/MetricBuild.h"
#include "kernels/metric_space/cpu/Build.h"
#include "kernels/metric_space/cpu/Search.h"

namespace faiss_bits::bench {

using namespace metric_space;

namespace {

/// Of SSS on the GPU.
constexpr int kGroup = 64;

std::shared_ptr<void> allocate(size_t bytes) {
    void* memory = nullptr;
    BITS_CUDA_CHECK(cudaMalloc(&memory, bytes));
    return {memory, [](void* p) { (void)cudaFree(p); }};
}

/// Milliseconds that f takes.
template <class F>
double timeOf(const F& f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
    return std::chrono::duration<double, std::milli>(
                   std::chrono::steady_clock::now() - start)
            .count();
}

MetricIndex& add(
        std::list<MetricIndex>& indexes,
        const std::string& name,
        const std::string& settings) {
    indexes.emplace_back();
    indexes.back().name = name;
    indexes.back().settings = settings;
    return indexes.back();
}

void makeSss(
        MetricIndex& index,
        const MetricVectors& onDevice,
        const PivotOptions& options,
        Workspace scratch) {
    index.buildMs = timeOf([&] {
        index.table = buildPivotsOnGpu(onDevice, options, scratch, nullptr);
        index.memory =
                GroupsMemory(onDevice, *index.table, kGroup, allocate, nullptr);
    });
}

} // namespace

std::list<MetricIndex> makeMetricIndexes(
        const MetricVectors& onHost,
        const MetricVectors& onDevice,
        const MetricIndexSettings& settings,
        Workspace scratch) {
    std::list<MetricIndex> indexes;
    add(indexes, "brute_force", "").memory =
            GroupsMemory(onDevice, allocate, nullptr);
    ListOfClustersOptions options;
    options.bucketSize = settings.bucketSize;
    MetricIndex& list =
            add(indexes,
                "list_of_clusters",
                formatMessage("bucketSize = %d", options.bucketSize));
    list.buildMs = timeOf([&] {
        list.list =
                buildListOfClustersOnGpu(onDevice, options, scratch, nullptr);
        list.memory = GroupsMemory(onDevice, *list.list, allocate, nullptr);
    });
    list.ordered = orderedRows(onHost, list.list->members);
    for (const double alpha : settings.alphas) {
        PivotOptions pivots;
        pivots.alpha = alpha;
        MetricIndex& sss =
                add(indexes, "sss", formatMessage("alpha = %g", alpha));
        makeSss(sss, onDevice, pivots, scratch);
        fillPivotDistances(onHost, *sss.table);
        sss.ordered = orderedRows(onHost, sss.table->order);
    }
    for (const int64_t number : settings.pivots) {
        PivotOptions pivots;
        pivots.alpha = 0.1; // as many as it may have
        pivots.maxPivots = int(number);
        MetricIndex& sss = add(
                indexes, "sss", formatMessage("pivots = %d", pivots.maxPivots));
        sss.forCpu = false;
        makeSss(sss, onDevice, pivots, scratch);
    }
    for (MetricIndex& index : indexes) {
        index.memory.makeColumns(allocate, nullptr);
    }
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
    return indexes;
}

} // namespace faiss_bits::bench
