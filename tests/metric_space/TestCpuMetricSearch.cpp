/// List of Clusters and SSS on the CPU: the answers of brute force, bit for
/// bit, and what the indexes promise of themselves.

#include <cmath>
#include <string>

#include "kernels/canonical/TrueDistance.h"
#include "kernels/common/Error.h"
#include "kernels/metric_space/cpu/Build.h"
#include "kernels/metric_space/cpu/Search.h"
#include "tests/metric_space/MetricHarness.h"

namespace faiss_bits::test {
namespace {

using namespace metric_space;

CpuSearch searchOf(const MetricCase& c, int threads = 2) {
    CpuSearch search;
    search.vectors = c.view();
    search.numQueries = c.numQueries();
    search.queries = c.queries.data();
    search.threads = threads;
    return search;
}

const std::vector<idx_t>& orderOf(const ListOfClusters& list) {
    return list.members;
}
const std::vector<idx_t>& orderOf(const PivotTable& table) {
    return table.order;
}

template <class Index>
void expectAnswers(const MetricCase& c, const Index& index) {
    CpuSearch search = searchOf(c, 1);
    // Of some cases the vectors are read where they are.
    const std::vector<float> rows = orderedRows(c.view(), orderOf(index));
    search.ordered = c.d == 3 ? nullptr : rows.data();
    for (const float radius : radiiOf(c)) {
        EXPECT_TRUE(isSame(
                rangeSearch(search, index, radius), plainRange(c, radius)))
                << c.name << ", d = " << c.d << ", n = " << c.n() << ", metric "
                << int(c.metric) << ", radius " << radius;
    }
    for (const idx_t k : {idx_t(1), idx_t(10), c.n() + 3}) {
        KnnAnswer got(c, k);
        knnSearch(search, index, k, got.distances.data(), got.ids.data());
        EXPECT_TRUE(isSameKnn(c, k, got))
                << c.name << ", d = " << c.d << ", n = " << c.n() << ", metric "
                << int(c.metric) << ", k = " << k;
    }
}

/// Runs f, which throws an Error with this text.
template <class F>
void expectError(const F& f, const std::string& text) {
    try {
        f();
        ADD_FAILURE() << "nothing was thrown, expected: " << text;
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
                << error.what();
    }
}

ListOfClusters listOf(const MetricCase& c, int bucketSize, uint64_t seed = 1) {
    ListOfClustersOptions options;
    options.bucketSize = bucketSize;
    options.seed = seed;
    return buildListOfClusters(c.view(), options, 2);
}

PivotTable tableOf(const MetricCase& c, double alpha, int maxPivots = 256) {
    PivotOptions options;
    options.alpha = alpha;
    options.maxPivots = maxPivots;
    return buildPivotTable(c.view(), options, 2);
}

TEST(CpuListOfClusters, AnswersAreThoseOfBruteForce) {
    for (const Metric metric : kTrueMetrics) {
        for (const int d : {1, 3, 19}) {
            for (const MetricCase& c : metricCases(metric, 250, d)) {
                for (const int bucketSize : {1, 7, 64, 1000}) {
                    expectAnswers(c, listOf(c, bucketSize));
                }
            }
        }
    }
}

TEST(CpuPivotTable, AnswersAreThoseOfBruteForce) {
    for (const Metric metric : kTrueMetrics) {
        for (const int d : {1, 3, 19}) {
            for (const MetricCase& c : metricCases(metric, 250, d)) {
                for (const double alpha : {0.1, 0.4, 0.66, 2.0}) {
                    expectAnswers(c, tableOf(c, alpha, 40));
                }
            }
        }
    }
}

TEST(CpuBruteForce, AnswersAreThoseOfTheOracle) {
    for (const Metric metric : kTrueMetrics) {
        for (const int d : {1, 7, 8, 9, 16, 40}) {
            for (const MetricCase& c : metricCases(metric, 60, d)) {
                for (const float radius : radiiOf(c)) {
                    EXPECT_TRUE(
                            isSame(rangeSearch(searchOf(c), radius),
                                   plainRange(c, radius)))
                            << c.name << ", radius " << radius;
                }
            }
        }
    }
}

TEST(CpuMetricSpace, FewVectorsAndEdgesOfBuckets) {
    for (const idx_t n : {0, 1, 2, 63, 64, 65, 66, 129, 130, 131}) {
        for (MetricCase c : metricCases(Metric::L2, 131, 4)) {
            c.vectors.resize(n * c.d);
            c.forget();
            expectAnswers(c, listOf(c, 64));
            expectAnswers(c, tableOf(c, 0.4));
        }
    }
}

TEST(CpuMetricSpace, ThreadsAndSeedsChangeNoAnswer) {
    MetricCase c = metricCases(Metric::L2, 500, 5)[3];
    const ListOfClusters one = listOf(c, 16);
    ListOfClustersOptions options;
    options.bucketSize = 16;
    const ListOfClusters other = buildListOfClusters(c.view(), options, 1);
    EXPECT_EQ(one.centers, other.centers);
    EXPECT_EQ(one.members, other.members);
    EXPECT_EQ(one.radii, other.radii);
    const RangeAnswer want = rangeSearch(searchOf(c, 1), one, 100);
    EXPECT_TRUE(isSame(rangeSearch(searchOf(c, 5), one, 100), want));
    for (const uint64_t seed : {2, 3, 400}) {
        expectAnswers(c, listOf(c, 16, seed));
    }
}

/// What the containment stop rests on.
TEST(CpuListOfClusters, LaterVectorsAreNoNearer) {
    const MetricCase c = metricCases(Metric::L1, 300, 6)[2];
    const ListOfClusters list = listOf(c, 20);
    checkListOfClusters(list, c.n());
    const auto distance = [&](idx_t a, idx_t b) {
        return canonicalDistance(
                c.metric,
                2,
                c.vectors.data() + a * c.d,
                c.vectors.data() + b * c.d,
                c.d);
    };
    double farthestSum = -1;
    for (size_t i = 0; i < list.centers.size(); ++i) {
        const size_t begin = i * 20;
        const size_t end = std::min(begin + 20, list.members.size());
        float radius = 0;
        for (size_t j = begin; j < end; ++j) {
            radius = std::max(
                    radius, distance(list.centers[i], list.members[j]));
        }
        EXPECT_EQ(list.radii[i], radius);
        for (size_t j = end; j < list.members.size(); ++j) {
            EXPECT_GE(distance(list.centers[i], list.members[j]), radius);
        }
        // The next center has the greatest sum of distances to those before.
        if (i + 1 < list.centers.size()) {
            const auto sumOf = [&](idx_t id) {
                double sum = 0;
                for (size_t j = 0; j <= i; ++j) {
                    sum += distance(list.centers[j], id);
                }
                return sum;
            };
            farthestSum = sumOf(list.centers[i + 1]);
            for (size_t j = end; j < list.members.size(); ++j) {
                EXPECT_LE(sumOf(list.members[j]), farthestSum);
            }
        }
    }
    EXPECT_GE(farthestSum, 0);
}

TEST(CpuPivotTable, PivotsAreFarFromEachOther) {
    const MetricCase c = metricCases(Metric::L2, 300, 3)[1];
    const PivotTable table = tableOf(c, 0.3);
    checkPivotTable(table, c.n());
    EXPECT_GT(table.pivots.size(), 2u);
    EXPECT_EQ(table.pivots[0], 0);
    const auto distance = [&](idx_t a, idx_t b) {
        return std::sqrt(double(canonicalDistance(
                c.metric,
                2,
                c.vectors.data() + a * c.d,
                c.vectors.data() + b * c.d,
                c.d)));
    };
    const double least = 0.3 * table.maxDistance;
    for (idx_t i = 0; i < c.n(); ++i) {
        bool isFar = true;
        bool isPivot = false;
        for (const idx_t pivot : table.pivots) {
            if (pivot < i) {
                isFar = isFar && distance(pivot, i) >= least;
            }
            isPivot = isPivot || pivot == i;
        }
        EXPECT_EQ(isPivot, isFar) << "vector " << i;
    }
}

TEST(CpuMetricSpace, IndexesComputeFewerDistances) {
    const MetricCase c = metricCases(Metric::L2, 2000, 3)[3]; // clusters
    MetricCounters counters;
    CpuSearch search = searchOf(c);
    search.counters = &counters;
    const ListOfClusters list = listOf(c, 16);
    rangeSearch(search, list, 0.01f);
    const uint64_t all = uint64_t(c.n()) * c.numQueries();
    EXPECT_LT(counters.distances, all / 2);
    EXPECT_GT(counters.references, 0u);
    EXPECT_LE(counters.references, c.numQueries() * list.centers.size());
    counters = {};
    const PivotTable table = tableOf(c, 0.3);
    rangeSearch(search, table, 0.01f);
    EXPECT_LT(counters.distances, all / 2);
    EXPECT_EQ(counters.references, c.numQueries() * table.pivots.size());
    counters = {};
    rangeSearch(search, 0.01f);
    EXPECT_EQ(counters.distances, all);
    EXPECT_EQ(counters.references, 0u);
}

TEST(CpuMetricSpace, BadArgumentsAreNamed) {
    MetricCase c = metricCases(Metric::L2, 20, 3)[0];
    ListOfClustersOptions list;
    list.bucketSize = 0;
    expectError([&] { buildListOfClusters(c.view(), list); }, "bucketSize = 0");
    PivotOptions pivots;
    pivots.alpha = 0;
    expectError([&] { buildPivotTable(c.view(), pivots); }, "alpha = 0");
    pivots.alpha = std::nan("");
    expectError([&] { buildPivotTable(c.view(), pivots); }, "alpha = ");
    pivots.alpha = 0.5;
    pivots.maxPivots = 0;
    expectError([&] { buildPivotTable(c.view(), pivots); }, "maxPivots = 0");
    MetricVectors vectors = c.view();
    vectors.metric = Metric::InnerProduct;
    expectError([&] { buildListOfClusters(vectors, {}); }, "metric = 1");
    vectors = c.view();
    vectors.d = 0;
    expectError([&] { buildPivotTable(vectors, {}); }, "d = 0");
    vectors = c.view();
    vectors.data = nullptr;
    expectError([&] { buildPivotTable(vectors, {}); }, "null pointer");
    const ListOfClusters good = listOf(c, 4);
    expectError(
            [&] { rangeSearch(searchOf(c), good, std::nanf("")); }, "radius");
    KnnAnswer got(c, 1);
    CpuSearch search = searchOf(c);
    const auto nearest = [&](idx_t k) {
        knnSearch(search, good, k, got.distances.data(), got.ids.data());
    };
    expectError([&] { nearest(0); }, "k = 0");
    search.queries = nullptr;
    expectError([&] { rangeSearch(search, good, 1.0f); }, "queries");
    search.numQueries = -1;
    expectError([&] { rangeSearch(search, good, 1.0f); }, "numQueries = -1");
    expectError([&] { nearest(1); }, "numQueries = -1");
    search.numQueries = 0; // no query, and nothing to read
    EXPECT_EQ(rangeSearch(search, good, 1.0f).limits.size(), 1u);
    search.vectors.d = 0;
    expectError([&] { rangeSearch(search, good, 1.0f); }, "d = 0");
}

TEST(CpuMetricSpace, BrokenIndexesAreNamed) {
    const MetricCase c = metricCases(Metric::L2, 20, 3)[0];
    const auto broken = [&](const auto& change, const char* text) {
        ListOfClusters list = listOf(c, 4); // four clusters of five
        change(list);
        expectError([&] { checkListOfClusters(list, c.n()); }, text);
    };
    using List = ListOfClusters;
    broken([](List& l) { l.members[0] = l.members[1]; }, "members: id");
    broken([](List& l) { l.members[0] = 20; },
           "members: id 20 is outside 0..19");
    broken([](List& l) { l.centers[3] = -1; }, "centers: id -1");
    broken([](List& l) { l.rest.push_back(0); }, "rest: id 0");
    broken([](List& l) { l.members.pop_back(); }, "19 ids for 20 vectors");
    broken([](List& l) { l.radii.pop_back(); }, "3 radii for 4 centers");
    broken([](List& l) { l.radii[2] = -1; }, "radius = -1");
    broken([](List& l) { l.radii[2] = std::nanf(""); }, "radius = nan");
    broken([](List& l) { l.bucketSize = 0; }, "bucketSize = 0");
    broken([](List& l) { l.bucketSize = 3; }, "16 members for 4 centers of 3");
    broken([](List& l) { l.bucketSize = 6; }, "16 members for 4 centers of 6");
    const PivotTable good = tableOf(c, 0.3);
    ASSERT_GT(good.pivots.size(), 1u);
    const auto brokenTable = [&](const auto& change, const char* text) {
        PivotTable table = good;
        change(table);
        expectError([&] { checkPivotTable(table, c.n()); }, text);
    };
    using Table = PivotTable;
    brokenTable([](Table& t) { t.order[0] = 20; }, "order: id 20 is outside");
    brokenTable([](Table& t) { t.order[0] = t.order[1]; }, "there twice");
    brokenTable([](Table& t) { t.order.pop_back(); }, "19 ids for 20 vectors");
    brokenTable([](Table& t) { t.rest.push_back(0); }, "rest: id 0");
    brokenTable([](Table& t) { t.pivots.clear(); }, "0 pivots for 20 vectors");
    brokenTable(
            [](Table& t) { t.pivots.resize(21); }, "21 pivots for 20 vectors");
    brokenTable([](Table& t) { t.pivots[0] = t.pivots[1]; }, "pivots: id");
    brokenTable(
            [](Table& t) {
                std::erase(t.order, t.pivots[1]);
                t.rest.push_back(t.pivots[1]);
            },
            "is none of the order");
}

TEST(CpuMetricSpace, CanBeInterrupted) {
    const MetricCase c = metricCases(Metric::L2, 300, 3)[0];
    const Interrupt stop = [] { throw Error("enough"); };
    expectError([&] { buildListOfClusters(c.view(), {}, 2, stop); }, "enough");
    expectError([&] { buildPivotTable(c.view(), {}, 2, stop); }, "enough");
    CpuSearch search = searchOf(c);
    search.interrupt = stop;
    expectError([&] { rangeSearch(search, listOf(c, 8), 1.0f); }, "enough");
}

/// Each pivot and few queries alone may take long: it asks before each of them.
TEST(CpuMetricSpace, AsksForInterruptsOften) {
    const MetricCase c = metricCases(Metric::L2, 300, 3)[0];
    size_t calls = 0;
    const Interrupt count = [&] { ++calls; };
    PivotTable table = buildPivotTable(c.view(), {}, 1, count);
    ASSERT_GT(table.pivots.size(), 1u);
    EXPECT_GE(calls, 2 * table.pivots.size());
    calls = 0;
    fillPivotDistances(c.view(), table, 1, count);
    EXPECT_EQ(calls, table.pivots.size());
    calls = 0;
    CpuSearch search = searchOf(c);
    ASSERT_GT(c.numQueries(), 3);
    search.threads = 1;
    search.interrupt = count;
    rangeSearch(search, listOf(c, 8), 1.0f);
    EXPECT_GE(calls, 3u); // 1, 2, 4 ... queries at a time
}

/// A true distance is never below leastTrue nor above mostTrue.
TEST(TrueDistance, BoundsHoldTheDistance) {
    for (const Metric metric : kTrueMetrics) {
        for (const MetricCase& c : metricCases(metric, 60, 11)) {
            for (idx_t q = 0; q < c.numQueries(); ++q) {
                for (idx_t i = 0; i < c.n(); ++i) {
                    // In more digits than float64 has.
                    long double sum = 0;
                    for (int j = 0; j < c.d; ++j) {
                        const long double gap = std::fabs(
                                (long double)c.vectors[i * c.d + j] -
                                (long double)c.queries[q * c.d + j]);
                        sum = metric == Metric::L2     ? sum + gap * gap
                                : metric == Metric::L1 ? sum + gap
                                                       : std::max(sum, gap);
                    }
                    if (std::isnan(sum)) {
                        continue;
                    }
                    const long double is =
                            metric == Metric::L2 ? std::sqrt(sum) : sum;
                    const float known = c.distance(q, i);
                    EXPECT_LE(canonical::leastTrue(metric, known), is);
                    EXPECT_GE(canonical::mostTrue(metric, known), is);
                    // As a table has it, from which a pivot at the query's
                    // place must not tell more.
                    const float inTable =
                            canonical::tableDistance(metric, known);
                    EXPECT_LE(canonical::leastByPivot(inTable, 0), is);
                    if (!std::isinf(known)) {
                        EXPECT_FALSE(
                                canonical::isOutside(inTable, 0, double(is)));
                    }
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
