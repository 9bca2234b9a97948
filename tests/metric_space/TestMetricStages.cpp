/// Range searches cut into two stages: the answers of brute force, whatever the
/// slices of the queries and of the groups.

#include <algorithm>
#include <numeric>

#include "tests/common/ExpectError.h"
#include "tests/common/GpuTest.h"
#include "tests/metric_space/GpuMetricHarness.h"

namespace faiss_bits::test {
namespace {

class GpuMetricStages : public GpuTest {};

/// Results of every query in any order, until they are sorted.
struct Found {
    explicit Found(idx_t numQueries) : ofQuery(numQueries) {}

    void add(
            const MetricRangePart& part,
            idx_t firstQuery,
            cudaStream_t stream) {
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        const auto limits = download(part.limits, part.rows + 1);
        const auto distances = download(part.distances, part.total);
        const auto ids = download(part.ids, part.total);
        EXPECT_EQ(limits.back(), part.total);
        for (idx_t i = 0; i < part.rows; ++i) {
            auto& one = ofQuery[firstQuery + part.first + i];
            EXPECT_TRUE(std::is_sorted(
                    ids.begin() + limits[i], ids.begin() + limits[i + 1]));
            for (idx_t j = limits[i]; j < limits[i + 1]; ++j) {
                one.emplace_back(ids[j], distances[j]);
            }
        }
    }

    RangeAnswer answer() {
        RangeAnswer result;
        result.limits.push_back(0);
        for (auto& one : ofQuery) {
            std::sort(one.begin(), one.end());
            for (const auto& [id, distance] : one) {
                result.ids.push_back(id);
                result.distances.push_back(distance);
            }
            result.limits.push_back(result.ids.size());
        }
        return result;
    }

    std::vector<std::vector<std::pair<idx_t, float>>> ofQuery;
};

/// The first stage of each of some slices, then the second of each.
RangeAnswer inStages(
        const MetricCase& c,
        const MetricSearchProblem& whole,
        float radius,
        idx_t sliceRows,
        size_t maxBytes,
        MetricCounters* counters = nullptr) {
    Found found(c.numQueries());
    TestStream stream;
    for (idx_t first = 0; first < c.numQueries(); first += sliceRows) {
        MetricSearchProblem slice = whole;
        slice.queries = whole.queries + first * c.d;
        slice.numQueries = std::min(sliceRows, c.numQueries() - first);
        const auto take = [&](const MetricRangePart& part) {
            found.add(part, first, stream);
        };
        // A stride that is longer than need be, and words that nobody wrote.
        const uint32_t stride = groupBitsWords(slice.numQueries) + 1;
        const size_t words = size_t(whole.groups.numGroups) * stride;
        const DeviceBuffer<uint32_t> bits(
                std::vector<uint32_t>(std::max<size_t>(words, 1), ~0u));
        {
            const MetricSearchPlan plan = planFirstStage(slice, maxBytes);
            const DeviceBuffer<uint8_t> scratch(plan.bytes);
            runFirstStage(
                    plan,
                    slice,
                    radius,
                    bits.data(),
                    stride,
                    {scratch.data(), plan.bytes},
                    stream,
                    take,
                    counters);
        }
        slice.groupBits = bits.data();
        slice.groupBitsStride = stride;
        const MetricSearchPlan plan = planMetricSearch(slice, 0, maxBytes);
        const DeviceBuffer<uint8_t> scratch(plan.bytes);
        runMetricRange(
                plan,
                slice,
                radius,
                {scratch.data(), plan.bytes},
                stream,
                take,
                counters);
    }
    return found.answer();
}

void expectStages(
        const MetricCase& c,
        const OnDevice& device,
        const MetricGroups& groups,
        const char* what) {
    const auto problem = problemOf(c, device, groups, Mapping::GroupMajor);
    for (const float radius : radiiOf(c)) {
        for (const size_t maxBytes : {size_t(1), size_t(1) << 22}) {
            for (const idx_t slice : {idx_t(5), idx_t(64), c.numQueries()}) {
                EXPECT_TRUE(
                        isSame(inStages(c, problem, radius, slice, maxBytes),
                               plainRange(c, radius)))
                        << what << ": " << c.name << ", n = " << c.n()
                        << ", metric " << int(c.metric) << ", radius " << radius
                        << ", slices of " << slice << ", " << maxBytes
                        << " bytes";
            }
        }
    }
}

void expectAllStages(const MetricCase& c, int bucketSize, double alpha) {
    const OnDevice device(c);
    const GroupsMemory list(
            device.view, listOnGpu(device, bucketSize), allocate, nullptr);
    expectStages(c, device, list.groups(), "list of clusters");
    const GroupsMemory pivots(
            device.view, pivotsOnGpu(device, alpha, 30), 64, allocate, nullptr);
    expectStages(c, device, pivots.groups(), "pivots");
}

TEST_F(GpuMetricStages, AnswersAreThoseOfBruteForce) {
    for (const Metric metric : kTrueMetrics) {
        for (const MetricCase& c : metricCases(metric, 300, 4)) {
            expectAllStages(withQueries(c, 70), 16, 0.3);
        }
    }
}

TEST_F(GpuMetricStages, FewVectors) {
    for (const idx_t n : {0, 1, 2, 17, 66}) {
        for (const int kind : {1, 8, 9}) {
            MetricCase c =
                    withQueries(metricCases(Metric::L2, 66, 3)[kind], 40);
            c.vectors.resize(n * c.d);
            c.forget();
            expectAllStages(c, 16, 0.4);
        }
    }
}

/// The distances of one search, and no center twice.
TEST_F(GpuMetricStages, CountsAreThoseOfOneSearch) {
    const MetricCase c =
            withQueries(metricCases(Metric::L2, 3000, 3)[3], 100); // clusters
    const OnDevice device(c);
    const GroupsMemory list(
            device.view, listOnGpu(device, 32), allocate, nullptr);
    const GroupsMemory pivots(
            device.view, pivotsOnGpu(device, 0.3, 20), 64, allocate, nullptr);
    for (const GroupsMemory* memory : {&list, &pivots}) {
        auto problem =
                problemOf(c, device, memory->groups(), Mapping::GroupMajor);
        MetricCounters whole;
        problem.way = GroupWay::Lists; // warps look for no end of the list
        rangeOf(problem, 0.01f, 1 << 22, &whole);
        MetricCounters staged;
        inStages(c, problem, 0.01f, c.numQueries(), 1 << 22, &staged);
        EXPECT_EQ(staged.distances, whole.distances);
        EXPECT_EQ(staged.references, whole.references);
    }
}

/// Centers with negative ids are no results; their groups are looked at.
TEST_F(GpuMetricStages, CentersOfOthers) {
    const MetricCase c = withQueries(metricCases(Metric::L2, 300, 4)[2], 70);
    const OnDevice device(c);
    const ListOfClusters clusters = listOnGpu(device, 16);
    const GroupsMemory list(device.view, clusters, allocate, nullptr);
    std::vector<int32_t> ids(clusters.centers.begin(), clusters.centers.end());
    for (size_t i = 0; i < ids.size(); i += 2) {
        ids[i] = -1;
    }
    const DeviceBuffer<int32_t> masked(ids);
    auto problem = problemOf(c, device, list.groups(), Mapping::GroupMajor);
    problem.groups.referenceIds = masked.data();
    const float infinity = std::numeric_limits<float>::infinity();
    RangeAnswer want = plainRange(c, infinity);
    const RangeAnswer got =
            inStages(c, problem, infinity, c.numQueries(), 1 << 22);
    RangeAnswer left;
    left.limits.push_back(0);
    for (idx_t q = 0; q < c.numQueries(); ++q) {
        for (idx_t i = want.limits[q]; i < want.limits[q + 1]; ++i) {
            const auto at = std::find(
                    clusters.centers.begin(),
                    clusters.centers.end(),
                    want.ids[i]);
            if (at == clusters.centers.end() ||
                (at - clusters.centers.begin()) % 2 == 1) {
                left.ids.push_back(want.ids[i]);
                left.distances.push_back(want.distances[i]);
            }
        }
        left.limits.push_back(left.ids.size());
    }
    EXPECT_LT(left.ids.size(), want.ids.size());
    EXPECT_TRUE(isSame(got, left));
}

/// A few of all, for compute-sanitizer.
TEST_F(GpuMetricStages, SmallStages) {
    const MetricCase c =
            withQueries(metricCases(Metric::L2, 90, 5)[8], 40); // infinities
    const OnDevice device(c);
    const GroupsMemory list(
            device.view, listOnGpu(device, 10), allocate, nullptr);
    const GroupsMemory pivots(
            device.view, pivotsOnGpu(device, 0.3, 5), 64, allocate, nullptr);
    for (const GroupsMemory* memory : {&list, &pivots}) {
        const auto problem =
                problemOf(c, device, memory->groups(), Mapping::GroupMajor);
        EXPECT_TRUE(isSame(
                inStages(c, problem, 30, 33, 1 << 14), plainRange(c, 30)));
    }
}

/// One search, for racecheck.
TEST_F(GpuMetricStages, TinySmallStages) {
    const MetricCase c = metricCases(Metric::L2, 40, 3)[10];
    const OnDevice device(c);
    const GroupsMemory list(
            device.view, listOnGpu(device, 8), allocate, nullptr);
    EXPECT_TRUE(isSame(
            inStages(
                    c,
                    problemOf(c, device, list.groups(), Mapping::GroupMajor),
                    3,
                    c.numQueries(),
                    1 << 14),
            plainRange(c, 3)));
}

TEST_F(GpuMetricStages, BadArgumentsAreNamed) {
    const MetricCase c = metricCases(Metric::L2, 50, 3)[0];
    const OnDevice device(c);
    const GroupsMemory list(
            device.view, listOnGpu(device, 8), allocate, nullptr);
    const GroupsMemory all(device.view, allocate, nullptr);
    const auto good = problemOf(c, device, list.groups(), Mapping::GroupMajor);
    const DeviceBuffer<uint32_t> bits(64);
    const auto first = [&](const MetricSearchProblem& p,
                           float radius,
                           uint32_t* to,
                           uint32_t stride) {
        const MetricSearchPlan plan = planFirstStage(p, 1 << 20);
        const DeviceBuffer<uint8_t> scratch(plan.bytes);
        runFirstStage(
                plan,
                p,
                radius,
                to,
                stride,
                {scratch.data(), plan.bytes},
                nullptr,
                [](const MetricRangePart&) {});
    };
    EXPECT_TRUE(
            throwsNaming([&] { first(good, NAN, bits.data(), 1); }, "radius"));
    EXPECT_TRUE(throwsNaming([&] { first(good, 1, nullptr, 1); }, "groupBits"));
    EXPECT_TRUE(throwsNaming(
            [&] { first(good, 1, bits.data(), 0); }, "groupBitsStride", "0"));
    auto bad = good;
    bad.queries = nullptr;
    EXPECT_TRUE(
            throwsNaming([&] { first(bad, 1, bits.data(), 1); }, "queries"));
    bad = good;
    bad.groups = all.groups();
    EXPECT_TRUE(throwsNaming(
            [&] { first(bad, 1, bits.data(), 1); }, "first stage"));
    bad = good;
    bad.groupBits = bits.data();
    EXPECT_TRUE(throwsNaming(
            [&] { planMetricSearch(bad, 0, 1 << 20); }, "groupBitsStride"));
    bad.groupBitsStride = 1;
    EXPECT_TRUE(throwsNaming(
            [&] { planMetricSearch(bad, 5, 1 << 20); }, "groupBits"));
    bad.groups = all.groups();
    EXPECT_TRUE(throwsNaming(
            [&] { planMetricSearch(bad, 0, 1 << 20); }, "groupBits"));
}

} // namespace
} // namespace faiss_bits::test
