/// List of Clusters and SSS on the GPU: the answers of brute force, bit for
/// bit, by every mapping; the indexes are those that the CPU makes.

#include <numeric>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/Error.h"
#include "kernels/metric_space/GroupsMemory.h"
#include "kernels/metric_space/MetricBuild.h"
#include "kernels/metric_space/MetricSearch.h"
#include "kernels/metric_space/cpu/Build.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/ExpectError.h"
#include "tests/common/GpuTest.h"
#include "tests/metric_space/MetricHarness.h"

namespace faiss_bits::test {
namespace {

using namespace metric_space;

class GpuMetricSpace : public GpuTest {};

std::shared_ptr<void> allocate(size_t bytes) {
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

MetricSearchProblem problemOf(
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

RangeAnswer rangeOf(
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
                for (const idx_t limit : download(part.limits, part.rows + 1)) {
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

KnnAnswer knnOf(
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

void expectRanges(
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

void expectNeighbours(
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

/// Ranges by both mappings, and neighbours.
void expectAnswers(
        const MetricCase& c,
        const OnDevice& device,
        GroupsMemory& memory,
        const std::string& what) {
    memory.makeColumns(allocate, nullptr);
    const auto groupMajor =
            problemOf(c, device, memory.groups(), Mapping::GroupMajor);
    expectRanges(c, groupMajor, what);
    expectNeighbours(c, groupMajor, what);
    expectRanges(
            c,
            problemOf(c, device, memory.groups(), Mapping::QueryMajor),
            what + ", query-major");
}

ListOfClusters listOnGpu(const OnDevice& device, int bucketSize) {
    ListOfClustersOptions options;
    options.bucketSize = bucketSize;
    const size_t bytes = listOfClustersWorkspaceBytes(device.view.n);
    const DeviceBuffer<uint8_t> scratch(bytes);
    return buildListOfClustersOnGpu(
            device.view, options, {scratch.data(), bytes}, nullptr);
}

PivotTable pivotsOnGpu(const OnDevice& device, double alpha, int maxPivots) {
    PivotOptions options;
    options.alpha = alpha;
    options.maxPivots = maxPivots;
    const size_t bytes = pivotsWorkspaceBytes(device.view.n);
    const DeviceBuffer<uint8_t> scratch(bytes);
    return buildPivotsOnGpu(
            device.view, options, {scratch.data(), bytes}, nullptr);
}

void expectSameList(const MetricCase& c, const OnDevice& device, int bucket) {
    ListOfClustersOptions options;
    options.bucketSize = bucket;
    const ListOfClusters want = buildListOfClusters(c.view(), options, 1);
    const ListOfClusters got = listOnGpu(device, bucket);
    EXPECT_EQ(got.centers, want.centers) << c.name << ", d = " << c.d;
    EXPECT_EQ(got.radii, want.radii) << c.name << ", d = " << c.d;
    EXPECT_EQ(got.members, want.members) << c.name << ", d = " << c.d;
    EXPECT_EQ(got.rest, want.rest) << c.name << ", d = " << c.d;
}

void expectSamePivots(
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

void expectAll(const MetricCase& c, int bucketSize, double alpha) {
    const OnDevice device(c);
    GroupsMemory list(
            device.view, listOnGpu(device, bucketSize), allocate, nullptr);
    expectAnswers(c, device, list, "list of clusters");
    GroupsMemory pivots(
            device.view, pivotsOnGpu(device, alpha, 30), 64, allocate, nullptr);
    expectAnswers(c, device, pivots, "pivots");
}

TEST_F(GpuMetricSpace, IndexesAreThoseOfTheCpu) {
    for (const Metric metric : kTrueMetrics) {
        for (const int d : {1, 16, 17}) {
            for (const MetricCase& c : metricCases(metric, 500, d)) {
                const OnDevice device(c);
                expectSameList(c, device, 1 + d);
                expectSameList(c, device, 64);
                expectSamePivots(c, device, 0.2);
                expectSamePivots(c, device, 0.66);
            }
        }
    }
}

TEST_F(GpuMetricSpace, AnswersAreThoseOfBruteForceL2) {
    for (const int d : {1, 3, 33}) {
        for (const MetricCase& c : metricCases(Metric::L2, 400, d)) {
            expectAll(c, 64, 0.3);
        }
    }
}

TEST_F(GpuMetricSpace, AnswersAreThoseOfBruteForceL1AndLinf) {
    for (const Metric metric : {Metric::L1, Metric::Linf}) {
        for (const int d : {2, 19}) {
            for (const MetricCase& c : metricCases(metric, 400, d)) {
                expectAll(c, 32, 0.4);
            }
        }
    }
}

TEST_F(GpuMetricSpace, EveryBucketSize) {
    for (const int bucket : {1, 7, 64, 65, 1000}) {
        for (const int kind : {2, 3, 8}) {
            const MetricCase c = metricCases(Metric::L2, 430, 5)[kind];
            expectAll(c, bucket, 0.25);
        }
    }
}

TEST_F(GpuMetricSpace, FewVectors) {
    for (const idx_t n : {0, 1, 2, 63, 64, 65, 66, 129, 130, 131}) {
        for (const int kind : {1, 8, 9}) {
            MetricCase c = metricCases(Metric::L2, 131, 4)[kind];
            c.vectors.resize(n * c.d);
            c.forget();
            const OnDevice device(c);
            expectSameList(c, device, 64);
            expectSamePivots(c, device, 0.4);
            expectAll(c, 64, 0.4);
        }
    }
}

TEST_F(GpuMetricSpace, BruteForceByBothMappings) {
    for (const Metric metric : kTrueMetrics) {
        for (const int d : {3, 20}) {
            for (const MetricCase& c : metricCases(metric, 600, d)) {
                const OnDevice device(c);
                GroupsMemory all(device.view, allocate, nullptr);
                all.makeColumns(allocate, nullptr);
                for (const Mapping mapping :
                     {Mapping::GroupMajor, Mapping::QueryMajor}) {
                    expectRanges(
                            c,
                            problemOf(c, device, all.groups(), mapping),
                            "brute force");
                }
            }
        }
    }
}

/// More queries than a tile or a word of bits, and room for few results: rounds
/// that are done again.
TEST_F(GpuMetricSpace, ManyQueriesInLittleMemory) {
    for (const idx_t numQueries : {32, 33, 65, 150}) {
        MetricCase c = metricCases(Metric::L2, 900, 6)[2];
        const MetricCase more = metricCases(Metric::L2, 900, 6)[2];
        while (c.numQueries() < numQueries) {
            c.queries.insert(
                    c.queries.end(),
                    more.vectors.begin() + c.numQueries() * 6,
                    more.vectors.begin() + (c.numQueries() + 1) * 6);
        }
        c.forget();
        const OnDevice device(c);
        for (const size_t maxBytes : {size_t(1), size_t(1) << 16}) {
            const GroupsMemory list(
                    device.view, listOnGpu(device, 20), allocate, nullptr);
            const GroupsMemory pivots(
                    device.view,
                    pivotsOnGpu(device, 0.3, 9),
                    64,
                    allocate,
                    nullptr);
            const GroupsMemory all(device.view, allocate, nullptr);
            for (const GroupsMemory* memory : {&list, &pivots, &all}) {
                const auto problem = problemOf(
                        c, device, memory->groups(), Mapping::GroupMajor);
                expectRanges(c, problem, "little memory", maxBytes);
                if (memory != &all) {
                    expectNeighbours(c, problem, "little memory", maxBytes);
                }
            }
        }
    }
}

TEST_F(GpuMetricSpace, IndexesComputeFewerDistances) {
    const MetricCase c = metricCases(Metric::L2, 5000, 3)[3]; // clusters
    const OnDevice device(c);
    const uint64_t all = uint64_t(c.n()) * c.numQueries();
    const ListOfClusters clusters = listOnGpu(device, 64);
    GroupsMemory list(device.view, clusters, allocate, nullptr);
    const PivotTable table = pivotsOnGpu(device, 0.3, 20);
    GroupsMemory pivots(device.view, table, 64, allocate, nullptr);
    GroupsMemory brute(device.view, allocate, nullptr);
    for (const Mapping mapping : {Mapping::GroupMajor, Mapping::QueryMajor}) {
        const auto countersOf = [&](GroupsMemory& memory) {
            memory.makeColumns(allocate, nullptr);
            MetricCounters counters;
            rangeOf(problemOf(c, device, memory.groups(), mapping),
                    0.01f,
                    1 << 22,
                    &counters);
            return counters;
        };
        const MetricCounters ofList = countersOf(list);
        EXPECT_LT(ofList.distances, all / 2);
        EXPECT_GT(ofList.references, 0u);
        EXPECT_LE(ofList.references, c.numQueries() * clusters.centers.size());
        const MetricCounters ofPivots = countersOf(pivots);
        EXPECT_LT(ofPivots.distances, all / 2);
        EXPECT_EQ(ofPivots.references, c.numQueries() * table.pivots.size());
        EXPECT_EQ(countersOf(brute).distances, all);
    }
}

/// A few of all, for compute-sanitizer.
void expectSmall(Metric metric) {
    const MetricCase c = metricCases(metric, 90, 5)[8]; // with infinities
    const OnDevice device(c);
    expectSameList(c, device, 10);
    expectSamePivots(c, device, 0.3);
    GroupsMemory list(device.view, listOnGpu(device, 10), allocate, nullptr);
    GroupsMemory pivots(
            device.view, pivotsOnGpu(device, 0.3, 5), 64, allocate, nullptr);
    GroupsMemory all(device.view, allocate, nullptr);
    for (GroupsMemory* memory : {&list, &pivots, &all}) {
        memory->makeColumns(allocate, nullptr);
        for (const Mapping mapping :
             {Mapping::GroupMajor, Mapping::QueryMajor}) {
            const auto problem =
                    problemOf(c, device, memory->groups(), mapping);
            const float radius = 30;
            EXPECT_TRUE(isSame(
                    rangeOf(problem, radius, 1 << 14), plainRange(c, radius)));
        }
        if (memory != &all) {
            const auto problem =
                    problemOf(c, device, memory->groups(), Mapping::GroupMajor);
            EXPECT_TRUE(isSameKnn(c, 5, knnOf(c, problem, 5, 1 << 14)));
        }
    }
}

TEST_F(GpuMetricSpace, SmallL2) {
    expectSmall(Metric::L2);
}

TEST_F(GpuMetricSpace, SmallL1) {
    expectSmall(Metric::L1);
}

TEST_F(GpuMetricSpace, SmallLinf) {
    expectSmall(Metric::Linf);
}

TEST_F(GpuMetricSpace, BadArgumentsAreNamed) {
    const MetricCase c = metricCases(Metric::L2, 50, 3)[0];
    const OnDevice device(c);
    const GroupsMemory list(
            device.view, listOnGpu(device, 8), allocate, nullptr);
    auto problem = problemOf(c, device, list.groups(), Mapping::GroupMajor);
    EXPECT_TRUE(throwsNaming([&] { rangeOf(problem, NAN); }, "radius"));
    const MetricSearchPlan plan = planMetricSearch(problem, 1, 1 << 20);
    const auto knn = [&](idx_t k, const MetricSearchProblem& p) {
        const DeviceBuffer<uint8_t> scratch(plan.bytes);
        runMetricKnn(
                plan,
                p,
                k,
                nullptr,
                nullptr,
                {scratch.data(), plan.bytes},
                nullptr);
    };
    EXPECT_TRUE(throwsNaming([&] { knn(0, problem); }, "k", "0"));
    EXPECT_TRUE(throwsNaming([&] { knn(1, problem); }, "outDistances"));
    auto bad = problem;
    bad.queries = nullptr;
    EXPECT_TRUE(throwsNaming([&] { rangeOf(bad, 1); }, "queries"));
    bad = problem;
    bad.numQueries = -1;
    EXPECT_TRUE(throwsNaming([&] { rangeOf(bad, 1); }, "numQueries", "-1"));
    bad = problem;
    bad.groups.metric = Metric::InnerProduct;
    EXPECT_TRUE(throwsNaming([&] { rangeOf(bad, 1); }, "metric"));
    bad = problem;
    bad.mapping = Mapping::QueryMajor;
    EXPECT_TRUE(throwsNaming([&] { rangeOf(bad, 1); }, "vectorColumns"));
    MetricVectors vectors = device.view;
    vectors.metric = Metric::Cosine;
    EXPECT_TRUE(throwsNaming(
            [&] { buildPivotsOnGpu(vectors, {}, {}, nullptr); }, "metric"));
    EXPECT_TRUE(throwsNaming(
            [&] { buildListOfClustersOnGpu(device.view, {}, {}, nullptr); },
            "workspace.bytes"));
}

} // namespace
} // namespace faiss_bits::test
