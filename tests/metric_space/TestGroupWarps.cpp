/// Ranges without lists, a warp a group: the answers of brute force, bit for
/// bit, at both sides of every edge of its kernels.

#include "tests/common/ExpectError.h"
#include "tests/common/GpuTest.h"
#include "tests/metric_space/GpuMetricHarness.h"

namespace faiss_bits::test {
namespace {

class GroupWarps : public GpuTest {};

/// By pairs that are sorted, and by bits where these have room.
void expectPairsAndBits(
        const MetricCase& c,
        const OnDevice& device,
        MetricSearchProblem problem,
        const std::string& what,
        size_t maxBytes) {
    problem.way = GroupWay::Warps;
    problem.vectors = nullptr;
    EXPECT_FALSE(planMetricSearch(problem, 0, maxBytes).byBits);
    expectRanges(c, problem, what, maxBytes);
    problem.vectors = device.vectors.data();
    expectRanges(c, problem, what + ", bits", maxBytes);
}

/// Both indexes by warps, on a device that seems to have so many
/// multiprocessors.
void expectWarps(
        const MetricCase& c,
        int bucketSize,
        int maxPivots,
        int multiprocessors,
        size_t maxBytes = 1 << 22) {
    const OnDevice device(c);
    const GroupsMemory list(
            device.view, listOnGpu(device, bucketSize), allocate, nullptr);
    const GroupsMemory pivots(
            device.view,
            pivotsOnGpu(device, 0.05, maxPivots),
            bucketSize,
            allocate,
            nullptr);
    for (const GroupsMemory* memory : {&list, &pivots}) {
        auto problem =
                problemOf(c, device, memory->groups(), Mapping::GroupMajor);
        problem.multiprocessors = multiprocessors;
        expectPairsAndBits(
                c,
                device,
                problem,
                memory == &list ? "list by warps" : "pivots by warps",
                maxBytes);
    }
}

TEST_F(GroupWarps, EveryDimensionAndMetric) {
    for (const Metric metric : kTrueMetrics) {
        for (const int d : {1, 4, 5, 8, 9, 16}) {
            for (const MetricCase& c : metricCases(metric, 150, d)) {
                expectWarps(c, 16, 5, 132);
            }
        }
    }
}

/// Words of 32 queries, and fewer warps than groups.
TEST_F(GroupWarps, QueriesAndGroupsBeyondTheGrid) {
    for (const idx_t numQueries : {1, 31, 32, 33, 64, 65, 200}) {
        for (const int kind : {3, 8}) {
            MetricCase c = withQueries(
                    metricCases(Metric::L2, 700, 3)[kind], numQueries);
            c.queries.resize(numQueries * c.d);
            c.forget();
            expectWarps(c, 1, 3, 1);
            expectWarps(c, 5, 32, 1);
        }
    }
}

/// Large groups are shared by several warps: 256 vectors each.
TEST_F(GroupWarps, LargeGroups) {
    for (const int bucket : {255, 256, 257, 512, 513, 5000}) {
        const MetricCase c =
                withQueries(metricCases(Metric::L2, 1200, 6)[3], 40);
        expectWarps(c, bucket, 4, 132);
    }
}

/// More results than a warp keeps and more than there is room for: rounds that
/// are done again.
TEST_F(GroupWarps, AllInRange) {
    MetricCase c = withQueries(metricCases(Metric::L2, 900, 4)[9], 70);
    for (const size_t maxBytes : {size_t(1), size_t(1) << 16}) {
        expectWarps(c, 64, 2, 132, maxBytes);
    }
}

/// Groups asked for by 1, 2, 4 and so on up to 32 at once: the fewer
/// multiprocessors there seem to be, the more.
TEST_F(GroupWarps, EverySpanOfGroups) {
    for (const idx_t numQueries : {1, 2, 17, 33}) {
        for (const int multiprocessors : {1, 3, 12}) {
            for (const Metric metric : {Metric::L2, Metric::Linf}) {
                MetricCase c = withQueries(
                        metricCases(metric, 4000, 3)[3], numQueries);
                c.queries.resize(numQueries * c.d);
                c.forget();
                expectWarps(c, 1, 3, multiprocessors, 1 << 24);
            }
        }
    }
}

/// Results of several items of a query, and of one with more than are listed.
TEST_F(GroupWarps, ItemsOfBits) {
    for (const idx_t n : {1023, 1024, 1025, 3000, 8191, 8192, 8193, 20000}) {
        const MetricCase c = withQueries(metricCases(Metric::L2, n, 3)[3], 5);
        const OnDevice device(c);
        const GroupsMemory pivots(
                device.view,
                pivotsOnGpu(device, 0.3, 3),
                64,
                allocate,
                nullptr);
        auto problem =
                problemOf(c, device, pivots.groups(), Mapping::GroupMajor);
        problem.vectors = device.vectors.data();
        EXPECT_TRUE(planMetricSearch(problem, 0, 1 << 20).byBits);
        for (const float radius : {0.001f, 0.1f, 0.5f, INFINITY}) {
            EXPECT_TRUE(isSame(
                    rangeOf(problem, radius, 1 << 20), plainRange(c, radius)))
                    << "n = " << n << ", radius = " << radius;
        }
    }
}

/// Parts of queries, where the results of all have no room.
TEST_F(GroupWarps, BitsInSeveralParts) {
    const MetricCase c = withQueries(metricCases(Metric::L2, 900, 4)[9], 70);
    const OnDevice device(c);
    const GroupsMemory list(
            device.view, listOnGpu(device, 40), allocate, nullptr);
    auto problem = problemOf(c, device, list.groups(), Mapping::GroupMajor);
    problem.vectors = device.vectors.data();
    constexpr size_t kBytes = 1 << 18;
    const MetricSearchPlan plan = planMetricSearch(problem, 0, kBytes);
    EXPECT_TRUE(plan.byBits);
    EXPECT_LT(plan.capacity, c.n() * c.numQueries() / 10);
    for (const float radius : radiiOf(c)) {
        EXPECT_TRUE(
                isSame(rangeOf(problem, radius, kBytes), plainRange(c, radius)))
                << radius;
    }
}

/// Numbers that float32 distances round away, to zero and to infinity.
TEST_F(GroupWarps, BeyondFloat32) {
    for (const float scale : {1e-30f, 1e-22f, 1e18f, 1.1e19f}) {
        for (const Metric metric : kTrueMetrics) {
            MetricCase c = withQueries(metricCases(metric, 300, 3)[3], 20);
            for (float& x : c.vectors) {
                x *= scale;
            }
            for (float& x : c.queries) {
                x *= scale;
            }
            c.forget();
            expectWarps(c, 16, 3, 132);
        }
    }
}

/// A few of all, for compute-sanitizer.
TEST_F(GroupWarps, SmallWarps) {
    const MetricCase c = withQueries(metricCases(Metric::L2, 90, 3)[9], 40);
    const OnDevice device(c);
    const GroupsMemory list(
            device.view, listOnGpu(device, 40), allocate, nullptr);
    const GroupsMemory pivots(
            device.view, pivotsOnGpu(device, 0.3, 3), 64, allocate, nullptr);
    for (const GroupsMemory* memory : {&list, &pivots}) {
        auto problem =
                problemOf(c, device, memory->groups(), Mapping::GroupMajor);
        problem.way = GroupWay::Warps;
        EXPECT_TRUE(
                isSame(rangeOf(problem, INFINITY, 1), plainRange(c, INFINITY)));
        problem.vectors = device.vectors.data();
        EXPECT_TRUE(isSame(
                rangeOf(problem, INFINITY, 1 << 20), plainRange(c, INFINITY)));
    }
}

TEST_F(GroupWarps, NothingToSearchIn) {
    for (const idx_t n : {0, 1, 2, 65, 66}) {
        MetricCase c = metricCases(Metric::Linf, 66, 2)[8];
        c.vectors.resize(n * c.d);
        c.forget();
        expectWarps(c, 64, 3, 132);
        MetricCase none = c;
        none.queries.clear();
        none.forget();
        expectWarps(none, 64, 3, 132);
    }
}

/// Where everything is in range, every pair is computed once, and counted.
TEST_F(GroupWarps, DistancesAreCounted) {
    const MetricCase c = withQueries(metricCases(Metric::L2, 800, 3)[3], 45);
    const OnDevice device(c);
    const ListOfClusters clusters = listOnGpu(device, 20);
    const PivotTable table = pivotsOnGpu(device, 0.3, 20);
    const GroupsMemory list(device.view, clusters, allocate, nullptr);
    const GroupsMemory pivots(device.view, table, 64, allocate, nullptr);
    const float* byIds = nullptr;
    const auto countersOf = [&](const GroupsMemory& memory, float radius) {
        auto problem =
                problemOf(c, device, memory.groups(), Mapping::GroupMajor);
        problem.way = GroupWay::Warps;
        problem.vectors = byIds;
        MetricCounters counters;
        rangeOf(problem, radius, 1 << 22, &counters);
        return counters;
    };
    const uint64_t all = uint64_t(c.n()) * c.numQueries();
    const uint64_t ofPivots = c.numQueries() * table.pivots.size();
    for (const bool byBits : {false, true}) {
        byIds = byBits ? device.vectors.data() : nullptr;
        EXPECT_EQ(countersOf(list, INFINITY).distances, all);
        EXPECT_EQ(countersOf(pivots, INFINITY).distances, all + ofPivots);
        const MetricCounters few = countersOf(list, 0.01f);
        EXPECT_LT(few.distances, all / 2);
        EXPECT_EQ(few.references, c.numQueries() * clusters.centers.size());
        EXPECT_EQ(countersOf(pivots, -1.0f).distances, ofPivots);
    }
}

/// What it has no room for is by lists, and refused where it is asked for.
TEST_F(GroupWarps, IsTakenWhereItCan) {
    const MetricCase c = metricCases(Metric::L2, 600, 16)[0];
    const OnDevice device(c);
    const auto planOf = [&](int maxPivots, GroupWay way) {
        const GroupsMemory memory(
                device.view,
                pivotsOnGpu(device, 0.01, maxPivots),
                64,
                allocate,
                nullptr);
        EXPECT_EQ(memory.groups().numReferences, uint32_t(maxPivots));
        auto problem =
                problemOf(c, device, memory.groups(), Mapping::GroupMajor);
        problem.way = way;
        return planMetricSearch(problem, 0, 1 << 20);
    };
    EXPECT_TRUE(planOf(32, GroupWay::Auto).byWarps);
    EXPECT_FALSE(planOf(33, GroupWay::Auto).byWarps);
    EXPECT_FALSE(planOf(32, GroupWay::Lists).byWarps);
    EXPECT_TRUE(planOf(32, GroupWay::Warps).byWarps);
    EXPECT_TRUE(throwsNaming(
            [&] { planOf(33, GroupWay::Warps); }, "way", "32 pivots"));
}

} // namespace
} // namespace faiss_bits::test
