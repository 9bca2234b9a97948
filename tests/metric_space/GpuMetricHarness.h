#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/common/CudaCheck.h"
#include "kernels/metric_space/GroupsMemory.h"
#include "kernels/metric_space/MetricBuild.h"
#include "kernels/metric_space/MetricSearch.h"
#include "kernels/metric_space/cpu/Build.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/metric_space/MetricHarness.h"

/// Searches of kernels/metric_space on the GPU, held against plain answers.
namespace faiss_bits::test {

using namespace metric_space;

inline std::shared_ptr<void> allocate(size_t bytes) {
    void* memory = nullptr;
    BITS_CUDA_CHECK(cudaMalloc(&memory, bytes));
    // So that what nobody has written is no likely answer.
    BITS_CUDA_CHECK(cudaMemset(memory, 0xFF, bytes));
    return {memory, [](void* p) { (void)cudaFree(p); }};
}

/// A case on the device.
struct OnDevice {
    explicit OnDevice(const MetricCase& c)
            : vectors(c.vectors),
              queries(c.queries),
              view{c.metric, c.d, c.n(), vectors.data()} {}

    DeviceBuffer<float> vectors;
    DeviceBuffer<float> queries;
    MetricVectors view;
};

inline MetricSearchProblem problemOf(
        const MetricCase& c,
        const OnDevice& device,
        const MetricGroups& groups,
        Mapping mapping) {
    MetricSearchProblem problem;
    problem.groups = groups;
    problem.numQueries = c.numQueries();
    problem.queries = device.queries.data();
    problem.mapping = mapping;
    problem.multiprocessors = multiprocessorCount();
    return problem;
}

template <class T>
std::vector<T> download(const T* from, size_t count) {
    std::vector<T> values(count);
    BITS_CUDA_CHECK(cudaMemcpy(
            values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
}

inline RangeAnswer rangeOf(
        const MetricSearchProblem& problem,
        float radius,
        size_t maxBytes = 1 << 22,
        MetricCounters* counters = nullptr) {
    const MetricSearchPlan plan = planMetricSearch(problem, 0, maxBytes);
    const DeviceBuffer<uint8_t> scratch(plan.bytes);
    RangeAnswer answer;
    answer.limits.push_back(0);
    TestStream stream;
    runMetricRange(
            plan,
            problem,
            radius,
            {scratch.data(), plan.bytes},
            stream,
            [&](const MetricRangePart& part) {
                BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
                EXPECT_EQ(part.first, idx_t(answer.limits.size()) - 1);
                const idx_t before = answer.limits.back();
                const auto limits = download(part.limits, part.rows + 1);
                for (idx_t i = 0; part.hostLimits && i <= part.rows; ++i) {
                    EXPECT_EQ(part.hostLimits[i], limits[i]);
                }
                for (const idx_t limit : limits) {
                    answer.limits.push_back(before + limit);
                }
                answer.limits.erase(
                        answer.limits.end() - part.rows - 1); // its 0
                const auto distances = download(part.distances, part.total);
                const auto ids = download(part.ids, part.total);
                answer.distances.insert(
                        answer.distances.end(),
                        distances.begin(),
                        distances.end());
                answer.ids.insert(answer.ids.end(), ids.begin(), ids.end());
            },
            counters);
    return answer;
}

inline KnnAnswer knnOf(
        const MetricCase& c,
        const MetricSearchProblem& problem,
        idx_t k,
        size_t maxBytes = 1 << 22) {
    const MetricSearchPlan plan = planMetricSearch(problem, k, maxBytes);
    const DeviceBuffer<uint8_t> scratch(plan.bytes);
    const DeviceBuffer<float> distances(c.numQueries() * k);
    const DeviceBuffer<idx_t> ids(c.numQueries() * k);
    TestStream stream;
    runMetricKnn(
            plan,
            problem,
            k,
            distances.data(),
            ids.data(),
            {scratch.data(), plan.bytes},
            stream);
    KnnAnswer answer(c, k);
    answer.distances = distances.download();
    answer.ids = ids.download();
    return answer;
}

inline void expectRanges(
        const MetricCase& c,
        const MetricSearchProblem& problem,
        const std::string& what,
        size_t maxBytes = 1 << 22) {
    for (const float radius : radiiOf(c)) {
        EXPECT_TRUE(isSame(
                rangeOf(problem, radius, maxBytes), plainRange(c, radius)))
                << what << ": " << c.name << ", d = " << c.d
                << ", n = " << c.n() << ", metric " << int(c.metric)
                << ", radius " << radius;
    }
}

inline void expectNeighbours(
        const MetricCase& c,
        const MetricSearchProblem& problem,
        const std::string& what,
        size_t maxBytes = 1 << 22) {
    for (const idx_t k : {idx_t(1), idx_t(10), idx_t(100), c.n() + 3}) {
        EXPECT_TRUE(isSameKnn(c, k, knnOf(c, problem, k, maxBytes)))
                << what << ": " << c.name << ", d = " << c.d
                << ", n = " << c.n() << ", metric " << int(c.metric)
                << ", k = " << k;
    }
}

/// Ranges by lists, and by warps where these can answer them.
inline void expectEveryWay(
        const MetricCase& c,
        MetricSearchProblem problem,
        const std::string& what,
        size_t maxBytes = 1 << 22) {
    problem.way = GroupWay::Lists;
    expectRanges(c, problem, what + ", lists", maxBytes);
    problem.way = GroupWay::Warps;
    if (c.d <= 16 && problem.groups.kind != GroupBounds::None &&
        (problem.groups.kind == GroupBounds::Centers ||
         problem.groups.numReferences <= 32)) {
        expectRanges(c, problem, what + ", warps", maxBytes);
    }
}

/// Ranges by both mappings, and neighbours.
inline void expectAnswers(
        const MetricCase& c,
        const OnDevice& device,
        GroupsMemory& memory,
        const std::string& what) {
    memory.makeColumns(allocate, nullptr);
    const auto groupMajor =
            problemOf(c, device, memory.groups(), Mapping::GroupMajor);
    expectEveryWay(c, groupMajor, what);
    expectNeighbours(c, groupMajor, what);
    expectRanges(
            c,
            problemOf(c, device, memory.groups(), Mapping::QueryMajor),
            what + ", query-major");
}

inline ListOfClusters listOnGpu(const OnDevice& device, int bucketSize) {
    ListOfClustersOptions options;
    options.bucketSize = bucketSize;
    const size_t bytes = listOfClustersWorkspaceBytes(device.view.n);
    const DeviceBuffer<uint8_t> scratch(bytes);
    return buildListOfClustersOnGpu(
            device.view, options, {scratch.data(), bytes}, nullptr);
}

inline PivotTable pivotsOnGpu(
        const OnDevice& device,
        double alpha,
        int maxPivots) {
    PivotOptions options;
    options.alpha = alpha;
    options.maxPivots = maxPivots;
    const size_t bytes = pivotsWorkspaceBytes(device.view.n);
    const DeviceBuffer<uint8_t> scratch(bytes);
    return buildPivotsOnGpu(
            device.view, options, {scratch.data(), bytes}, nullptr);
}

inline void expectSameList(
        const MetricCase& c,
        const OnDevice& device,
        int bucket) {
    ListOfClustersOptions options;
    options.bucketSize = bucket;
    const ListOfClusters want = buildListOfClusters(c.view(), options, 1);
    const ListOfClusters got = listOnGpu(device, bucket);
    EXPECT_EQ(got.centers, want.centers) << c.name << ", d = " << c.d;
    EXPECT_EQ(got.radii, want.radii) << c.name << ", d = " << c.d;
    EXPECT_EQ(got.members, want.members) << c.name << ", d = " << c.d;
    EXPECT_EQ(got.rest, want.rest) << c.name << ", d = " << c.d;
}

inline void expectSamePivots(
        const MetricCase& c,
        const OnDevice& device,
        double alpha) {
    PivotOptions options;
    options.alpha = alpha;
    options.maxPivots = 30;
    const PivotTable want = buildPivotTable(c.view(), options, 1);
    const PivotTable got = pivotsOnGpu(device, alpha, 30);
    EXPECT_EQ(got.pivots, want.pivots) << c.name << ", d = " << c.d;
    EXPECT_EQ(got.order, want.order) << c.name << ", d = " << c.d;
    EXPECT_EQ(got.rest, want.rest) << c.name << ", d = " << c.d;
    EXPECT_EQ(got.maxDistance, want.maxDistance) << c.name;
}

inline void expectAll(const MetricCase& c, int bucketSize, double alpha) {
    const OnDevice device(c);
    GroupsMemory list(
            device.view, listOnGpu(device, bucketSize), allocate, nullptr);
    expectAnswers(c, device, list, "list of clusters");
    GroupsMemory pivots(
            device.view, pivotsOnGpu(device, alpha, 30), 64, allocate, nullptr);
    expectAnswers(c, device, pivots, "pivots");
}

} // namespace faiss_bits::test
