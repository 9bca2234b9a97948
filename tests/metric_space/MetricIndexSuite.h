#pragma once

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <faiss/Index.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissException.h>
#include <faiss/impl/IDSelector.h>

#include "tests/metric_space/MetricHarness.h"

/// What every index class for metric spaces must pass: instantiated for those
/// of the CPU and of the GPU.
namespace faiss_bits::test {

inline faiss::MetricType faissMetric(Metric metric) {
    return metric == Metric::L1      ? faiss::METRIC_L1
            : metric == Metric::Linf ? faiss::METRIC_Linf
                                     : faiss::METRIC_L2;
}

inline RangeAnswer rangeOfIndex(
        const faiss::Index& index,
        const MetricCase& c,
        float radius) {
    faiss::RangeSearchResult result(c.numQueries());
    index.range_search(c.numQueries(), c.queries.data(), radius, &result);
    RangeAnswer answer;
    answer.limits.assign(result.lims, result.lims + c.numQueries() + 1);
    answer.distances.assign(
            result.distances, result.distances + answer.limits.back());
    answer.ids.assign(result.labels, result.labels + answer.limits.back());
    return answer;
}

inline void expectIndexAnswers(const faiss::Index& index, const MetricCase& c) {
    EXPECT_EQ(index.ntotal, c.n());
    for (const float radius : radiiOf(c)) {
        EXPECT_TRUE(
                isSame(rangeOfIndex(index, c, radius), plainRange(c, radius)))
                << c.name << ", n = " << c.n() << ", radius " << radius;
    }
    for (const idx_t k : {idx_t(1), idx_t(7), c.n() + 2}) {
        KnnAnswer got(c, k);
        index.search(
                c.numQueries(),
                c.queries.data(),
                k,
                got.distances.data(),
                got.ids.data());
        EXPECT_TRUE(isSameKnn(c, k, got)) << c.name << ", k = " << k;
    }
}

/// f throws a FaissException with this text in it.
template <class F>
void expectFaissError(const F& f, const std::string& text) {
    try {
        f();
        ADD_FAILURE() << "nothing was thrown, expected: " << text;
    } catch (const faiss::FaissException& error) {
        EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
                << error.what();
    }
}

/// A file of a test's own, which goes with it.
class TestFile {
   public:
    explicit TestFile(const std::string& name)
            : path_(::testing::TempDir() + name) {}
    ~TestFile() {
        std::remove(path_.c_str());
    }
    const char* path() const {
        return path_.c_str();
    }
    std::string bytes() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void write(const std::string& bytes) const {
        std::ofstream(path_, std::ios::binary) << bytes;
    }

   private:
    std::string path_;
};

/// Kind has list(d, metric, bucketSize), sss(d, metric, alpha) and
/// name().
template <class Kind>
struct MetricIndexSuite {
    static void answers() {
        for (const Metric metric : kTrueMetrics) {
            for (const MetricCase& c : metricCases(metric, 300, 5)) {
                const auto list = Kind::list(5, faissMetric(metric), 16);
                EXPECT_EQ(list->metric_type, faissMetric(metric));
                list->add(c.n(), c.vectors.data());
                expectIndexAnswers(*list, c);
                const auto sss = Kind::sss(5, faissMetric(metric), 0.3);
                sss->add(c.n(), c.vectors.data());
                expectIndexAnswers(*sss, c);
            }
        }
    }

    template <class Index>
    static void lifeCycleOf(Index& index) {
        const MetricCase all = metricCases(Metric::L2, 200, 4)[2];
        expectFaissError([&] { index.add(-1, all.vectors.data()); }, "n = -1");
        expectFaissError([&] { index.add(1, nullptr); }, "x is a null");
        expectFaissError(
                [&] { index.add(idx_t(1) << 31, all.vectors.data()); },
                "n = 2147483648: with the 0 vectors");
        MetricCase c = all;
        c.vectors.clear();
        c.forget();
        expectIndexAnswers(index, c); // none
        EXPECT_TRUE(index.is_trained);
        // In several calls, with searches between.
        for (const idx_t end : {1, 2, 60, 200}) {
            const idx_t begin = c.n();
            index.add(end - begin, all.vectors.data() + begin * c.d);
            c.vectors.assign(
                    all.vectors.begin(), all.vectors.begin() + end * c.d);
            c.forget();
            EXPECT_FALSE(index.isBuilt());
            expectIndexAnswers(index, c);
            EXPECT_TRUE(index.isBuilt());
        }
        index.add(0, nullptr);
        EXPECT_TRUE(index.isBuilt());
        std::vector<float> row(c.d);
        index.reconstruct(137, row.data());
        EXPECT_EQ(
                0,
                std::memcmp(
                        row.data(),
                        &c.vectors[137 * c.d],
                        c.d * sizeof(float)));
        std::vector<float> rows(c.vectors.size());
        index.reconstruct_n(0, c.n(), rows.data());
        EXPECT_EQ(rows, c.vectors);
        index.reconstruct_n(150, 1, row.data());
        EXPECT_TRUE(std::equal(row.begin(), row.end(), &c.vectors[150 * c.d]));
        expectFaissError([&] { index.reconstruct(0, nullptr); }, "is a null");
        expectFaissError([&] { index.reconstruct_n(0, 2, nullptr); }, "null");
        expectFaissError([&] { index.reconstruct(200, row.data()); }, "200");
        expectFaissError(
                [&] { index.reconstruct_n(199, 2, row.data()); },
                " = 2: there are only 1 vectors from i0 = 199 on");
        index.resetDistances();
        EXPECT_EQ(index.numDistances(), 0u);
        rangeOfIndex(index, c, 1.0f);
        EXPECT_GT(index.numDistances(), 0u);
        index.reset();
        EXPECT_EQ(index.ntotal, 0);
        c.vectors.clear();
        c.forget();
        expectIndexAnswers(index, c);
        index.add(all.n(), all.vectors.data());
        index.build();
        EXPECT_TRUE(index.isBuilt());
        expectIndexAnswers(index, all);
    }

    static void lifeCycle() {
        lifeCycleOf(*Kind::list(4, faiss::METRIC_L2, 16));
        lifeCycleOf(*Kind::sss(4, faiss::METRIC_L2, 0.3));
    }

    static void badArguments() {
        expectFaissError([] { Kind::list(0, faiss::METRIC_L2, 16); }, "d = 0");
        expectFaissError(
                [] { Kind::list(4, faiss::METRIC_INNER_PRODUCT, 16); },
                "metric = 0");
        expectFaissError(
                [] { Kind::list(4, faiss::METRIC_L2, 0); }, "bucketSize = 0");
        expectFaissError(
                [] { Kind::sss(4, faiss::METRIC_L2, -1); }, "alpha = -1");
        const MetricCase c = metricCases(Metric::L2, 50, 4)[0];
        const auto index = Kind::list(4, faiss::METRIC_L2, 16);
        index->add(c.n(), c.vectors.data());
        const float* x = c.queries.data();
        std::vector<float> distances(10);
        std::vector<idx_t> labels(10);
        const auto search = [&](idx_t n,
                                const float* queries,
                                idx_t k,
                                const faiss::SearchParameters* params) {
            index->search(
                    n, queries, k, distances.data(), labels.data(), params);
        };
        expectFaissError([&] { search(1, x, 0, nullptr); }, "k = 0");
        expectFaissError([&] { search(-1, x, 1, nullptr); }, "n = -1");
        expectFaissError([&] { search(1, nullptr, 1, nullptr); }, "x is a");
        faiss::SearchParameters params;
        search(1, x, 1, &params); // nothing set
        faiss::IDSelectorRange range(0, 5);
        params.sel = &range;
        expectFaissError([&] { search(1, x, 1, &params); }, "params->sel");
        faiss::RangeSearchResult result(1);
        const auto ranges = [&](idx_t n, float radius) {
            index->range_search(n, x, radius, &result);
        };
        expectFaissError([&] { ranges(1, std::nanf("")); }, "radius = NaN");
        expectFaissError([&] { ranges(2, 1); }, "result->nq = 1");
        expectFaissError([&] { ranges(-1, 1); }, "n = -1");
        expectFaissError(
                [&] { index->range_search(1, x, 1, nullptr); }, "result");
        expectFaissError(
                [&] { index->range_search(1, x, 1, &result, &params); },
                "params->sel");
        ranges(1, 1);
        expectFaissError([&] { ranges(1, 1); }, "another search");
        expectIndexAnswers(*index, c); // as it was
    }

    template <class Index>
    static void filesOf(Index& index, Index& other, const char* name) {
        const MetricCase c = metricCases(Metric::L1, 150, 4)[8];
        const TestFile file(std::string("metric_") + Kind::name() + name);
        index.add(c.n(), c.vectors.data());
        index.write(file.path()); // not made
        other.read(file.path());
        EXPECT_FALSE(other.isBuilt());
        expectIndexAnswers(other, c);
        index.build();
        index.write(file.path());
        other.read(file.path());
        EXPECT_TRUE(other.isBuilt());
        EXPECT_EQ(other.d, 4);
        EXPECT_EQ(other.metric_type, faiss::METRIC_L1);
        expectIndexAnswers(other, c);
        const std::string good = file.bytes();
        const auto expectRefused = [&](const std::string& bytes) {
            file.write(bytes);
            expectFaissError([&] { other.read(file.path()); }, file.path());
        };
        for (const size_t length :
             {size_t(0),
              size_t(5),
              size_t(30),
              size_t(200),
              good.size() / 2,
              good.size() - 1}) {
            expectRefused(good.substr(0, length));
        }
        expectRefused(good + "x");
        for (size_t at = 0; at < good.size(); at += 61) {
            std::string changed = good;
            changed[at] = char(changed[at] ^ 4);
            file.write(changed);
            EXPECT_THROW(other.read(file.path()), faiss::FaissException)
                    << "byte " << at;
        }
        expectIndexAnswers(other, c); // as it was
        expectFaissError([&] { other.read("/no/such/file"); }, "/no/such/file");
        expectFaissError(
                [&] { other.write("/no/such/file"); }, "/no/such/file");
        expectFaissError([&] { other.read(nullptr); }, "fname");
        file.write(good);
    }

    static void files() {
        const auto list = Kind::list(4, faiss::METRIC_L1, 16);
        const auto otherList = Kind::list(7, faiss::METRIC_L2, 3);
        filesOf(*list, *otherList, "list");
        EXPECT_EQ(otherList->bucketSize(), 16);
        EXPECT_EQ(otherList->numClusters(), list->numClusters());
        const auto sss = Kind::sss(4, faiss::METRIC_L1, 0.2);
        const auto otherSss = Kind::sss(7, faiss::METRIC_L2, 0.9);
        filesOf(*sss, *otherSss, "sss");
        EXPECT_EQ(otherSss->alpha(), 0.2);
        EXPECT_EQ(otherSss->numPivots(), sss->numPivots());
        // Of the other kind.
        const TestFile file(std::string("metric_kind_") + Kind::name());
        list->write(file.path());
        expectFaissError([&] { sss->read(file.path()); }, "another kind");
    }
};

} // namespace faiss_bits::test
