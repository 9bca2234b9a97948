/// IndexListOfClusters and IndexSSS.

#include <thread>

#include <faiss/IndexIDMap.h>

#include "faiss_bits/metric_space/IndexListOfClusters.h"
#include "faiss_bits/metric_space/IndexSSS.h"
#include "tests/metric_space/MetricIndexSuite.h"

namespace faiss_bits::test {
namespace {

struct CpuKind {
    static const char* name() {
        return "cpu_";
    }
    static std::unique_ptr<IndexListOfClusters> list(
            int d,
            faiss::MetricType metric,
            int bucketSize) {
        return std::make_unique<IndexListOfClusters>(d, metric, bucketSize);
    }
    static std::unique_ptr<IndexSSS> sss(
            int d,
            faiss::MetricType metric,
            double alpha) {
        return std::make_unique<IndexSSS>(d, metric, alpha);
    }
};

using Suite = MetricIndexSuite<CpuKind>;

TEST(MetricIndexes, AnswersAreThoseOfBruteForce) {
    Suite::answers();
}

TEST(MetricIndexes, LifeCycle) {
    Suite::lifeCycle();
}

TEST(MetricIndexes, BadArgumentsAreNamed) {
    Suite::badArguments();
}

TEST(MetricIndexes, Files) {
    Suite::files();
}

TEST(MetricIndexes, BehindAnIdMap) {
    const MetricCase c = metricCases(Metric::L2, 80, 3)[3];
    IndexListOfClusters index(3);
    faiss::IndexIDMap map(&index);
    std::vector<idx_t> ids;
    for (idx_t i = 0; i < c.n(); ++i) {
        ids.push_back(1000 + i * i);
    }
    map.add_with_ids(c.n(), c.vectors.data(), ids.data());
    KnnAnswer got(c, 3);
    map.search(
            c.numQueries(),
            c.queries.data(),
            3,
            got.distances.data(),
            got.ids.data());
    for (idx_t& id : got.ids) {
        for (idx_t i = 0; i < c.n(); ++i) {
            if (id == 1000 + i * i) {
                id = i;
                break;
            }
        }
    }
    EXPECT_TRUE(isSameKnn(c, 3, got));
}

/// The first search makes the index; others at the same time wait for it.
TEST(MetricIndexes, SearchesAtTheSameTime) {
    const MetricCase c = metricCases(Metric::L2, 600, 4)[2];
    IndexListOfClusters index(4);
    index.add(c.n(), c.vectors.data());
    const RangeAnswer want = plainRange(c, 3e4f);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            EXPECT_TRUE(isSame(rangeOfIndex(index, c, 3e4f), want));
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

} // namespace
} // namespace faiss_bits::test
