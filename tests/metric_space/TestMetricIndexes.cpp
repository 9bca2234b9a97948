/// IndexListOfClusters and IndexSSS.

#include <thread>

#include <faiss/IndexIDMap.h>

#include "faiss_bits/metric_space/IndexListOfClusters.h"
#include "faiss_bits/metric_space/IndexSSS.h"
#include "faiss_bits/metric_space/MetricContents.h"
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

using detail::MetricIndexKind;
using Contents = detail::MetricContents;
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

/// A file whose sum is right, but whose contents are none of an index:
/// `change` has broken them.
template <class Change>
void expectRefused(
        IndexMetricSpace& index,
        const Contents& good,
        const Change& change,
        const std::string& text) {
    const TestFile file("metric_broken");
    Contents broken = good;
    change(broken);
    detail::writeMetricFile(file.path(), broken);
    expectFaissError([&] { index.read(file.path()); }, text);
}

TEST(MetricIndexes, FilesOfBrokenContents) {
    const MetricCase c = metricCases(Metric::L2, 60, 4)[0];
    const TestFile file("metric_good");
    const auto list = CpuKind::list(4, faiss::METRIC_L2, 16);
    list->add(c.n(), c.vectors.data());
    list->build();
    list->write(file.path());
    const Contents good = detail::readMetricFile(
            file.path(), MetricIndexKind::ListOfClusters);
    const auto refused = [&](const auto& change, const char* text) {
        expectRefused(*list, good, change, text);
    };
    refused([](Contents& c) { c.d = 0; }, "has a d that does not fit");
    refused([](Contents& c) { c.n = -1; }, "has an n that does not fit");
    refused([](Contents& c) { c.n = idx_t(1) << 31; }, "has an n that does");
    refused([](Contents& c) { c.n = 1 << 20; }, "is cut off");
    refused([](Contents& c) { c.vectors.pop_back(); },
            "has a number of vectors that does not fit");
    refused([](Contents& c) { c.vectors.push_back(0); },
            "has a size that does not fit");
    refused([](Contents& c) { c.listOptions.bucketSize = 0; },
            "bucketSize = 0");
    refused([](Contents& c) { c.list.members[0] = c.list.members[1]; },
            "twice");
    expectIndexAnswers(*list, c); // as it was

    const auto sss = CpuKind::sss(4, faiss::METRIC_L2, 0.3);
    sss->add(c.n(), c.vectors.data());
    sss->build();
    sss->write(file.path());
    const Contents table =
            detail::readMetricFile(file.path(), MetricIndexKind::Sss);
    expectRefused(
            *sss,
            table,
            [](Contents& c) { c.pivotOptions.maxPivots = 0; },
            "maxPivots = 0");
    expectRefused(
            *sss,
            table,
            [](Contents& c) { c.table.order[0] = c.table.order[1]; },
            "twice");
    expectIndexAnswers(*sss, c);
}

/// What a later build() goes by comes back from a file.
TEST(MetricIndexes, FilesKeepOptions) {
    Contents contents;
    contents.d = 3;
    contents.listOptions.bucketSize = 5;
    contents.listOptions.seed = 7;
    contents.pivotOptions.alpha = 0.4;
    contents.pivotOptions.maxPivots = 9;
    const TestFile file("metric_options");
    for (const Metric metric : kTrueMetrics) {
        contents.metric = metric;
        detail::writeMetricFile(file.path(), contents);
        const auto back = detail::readMetricFile(file.path(), contents.kind);
        EXPECT_EQ(back.metric, metric);
        EXPECT_EQ(back.listOptions.bucketSize, 5);
        EXPECT_EQ(back.listOptions.seed, 7u);
        EXPECT_EQ(back.pivotOptions.alpha, 0.4);
        EXPECT_EQ(back.pivotOptions.maxPivots, 9);
    }
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
