/// List of Clusters and SSS on the GPU: the answers of brute force, bit for
/// bit, by every mapping; the indexes are those that the CPU makes.

#include "tests/common/ExpectError.h"
#include "tests/common/GpuTest.h"
#include "tests/metric_space/GpuMetricHarness.h"

namespace faiss_bits::test {
namespace {

class GpuMetricSpace : public GpuTest {};

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
                if (memory == &all) {
                    expectRanges(c, problem, "little memory", maxBytes);
                } else {
                    expectEveryWay(c, problem, "little memory", maxBytes);
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
        for (const GroupWay way : {GroupWay::Lists, GroupWay::Warps}) {
            auto problem =
                    problemOf(c, device, memory->groups(), Mapping::GroupMajor);
            problem.way = way;
            if (memory != &all) {
                EXPECT_TRUE(isSame(
                        rangeOf(problem, 30, 1 << 14), plainRange(c, 30)));
            }
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

/// One search, for racecheck.
TEST_F(GpuMetricSpace, TinySmallRange) {
    const MetricCase c = metricCases(Metric::L2, 40, 3)[10];
    const OnDevice device(c);
    const ListOfClusters clusters = listOnGpu(device, 8);
    const GroupsMemory list(device.view, clusters, allocate, nullptr);
    auto problem = problemOf(c, device, list.groups(), Mapping::GroupMajor);
    for (const GroupWay way : {GroupWay::Lists, GroupWay::Warps}) {
        problem.way = way;
        EXPECT_TRUE(
                isSame(rangeOf(problem, 3.0f, 1 << 14), plainRange(c, 3.0f)));
    }
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
    bad = problem;
    bad.way = GroupWay::Warps;
    EXPECT_TRUE(throwsNaming([&] { planMetricSearch(bad, 1, 1); }, "way"));
    EXPECT_TRUE(throwsNaming([&] { planFirstStage(bad, 1); }, "way"));
    bad.groups.d = 17;
    EXPECT_TRUE(throwsNaming([&] { rangeOf(bad, 1); }, "way", "17"));
    const GroupsMemory all(device.view, allocate, nullptr);
    bad = problemOf(c, device, all.groups(), Mapping::GroupMajor);
    bad.way = GroupWay::Lists;
    EXPECT_TRUE(throwsNaming([&] { rangeOf(bad, 1); }, "way"));
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
