/// Every bad argument: a FaissException that names it, and an index that is
/// what it was.

#include <faiss/IndexFlat.h>

#include "faiss_bits/flat/FusedDistance.h"
#include "tests/flat/FusedHarness.h"

namespace faiss_bits::test {
namespace {

class FusedFlatArguments : public ::testing::Test {
   protected:
    FusedFlatArguments() : data(makeCase()), index(data.makeIndex()) {}

    static FusedCase makeCase() {
        FusedCase c;
        c.n = 100;
        c.d = 8;
        c.q = 3;
        c.fill = Fill::Integers;
        return c;
    }

    void TearDown() override {
        // Still in use, as if nothing had been asked.
        EXPECT_EQ(index->ntotal, 100);
        data.expectNearest(searchOnHost(*index, data.queries, 5), 5);
    }

    FusedData data;
    std::unique_ptr<IndexFusedFlat> index;
    float distances[30];
    idx_t labels[30];
    float x[24] = {};
};

TEST_F(FusedFlatArguments, Constructors) {
    for (int d : {0, -4}) {
        EXPECT_TRUE(faissThrowsNaming(
                [&] { IndexFusedFlat index(d); }, "d", std::to_string(d)));
    }
    for (auto metric : {faiss::METRIC_Canberra, faiss::METRIC_JensenShannon}) {
        EXPECT_TRUE(faissThrowsNaming(
                [&] { IndexFusedFlat index(4, metric); },
                "metric",
                std::to_string(int(metric))));
        const faiss::IndexFlat other(4, metric);
        EXPECT_TRUE(faissThrowsNaming(
                [&] { IndexFusedFlat index(other); },
                "metric",
                std::to_string(int(metric))));
    }
    const faiss::IndexFlat noDimensions;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { IndexFusedFlat index(noDimensions); }, "d", "0"));
}

TEST_F(FusedFlatArguments, Search) {
    for (idx_t k : {idx_t(0), idx_t(-1), idx_t(-1) << 40}) {
        const std::string value = std::to_string(k);
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->search(3, x, k, distances, labels); },
                "k",
                value));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->assign(3, x, labels, k); }, "k", value));
        EXPECT_TRUE(faissThrowsNaming([&] { index->plan(3, k); }, "k", value));
        // Also where there is nothing to search.
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->search(0, x, k, distances, labels); },
                "k",
                value));
    }
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(-1, x, 5, distances, labels); }, "n", "-1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(3, nullptr, 5, distances, labels); }, "x"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(3, x, 5, nullptr, labels); }, "distances"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(3, x, 5, distances, nullptr); }, "labels"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->assign(3, nullptr, labels, 5); }, "x"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->assign(3, x, nullptr, 5); }, "labels"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->assign(-2, x, labels, 5); }, "n", "-2"));
    EXPECT_TRUE(faissThrowsNaming([&] { index->plan(-2, 5); }, "n", "-2"));
}

TEST_F(FusedFlatArguments, RangeSearch) {
    faiss::RangeSearchResult three(3);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->range_search(-1, x, 1, &three); }, "n", "-1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->range_search(2, x, 1, &three); }, "nq", "3"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->range_search(3, nullptr, 1, &three); }, "x"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->range_search(3, x, 1, nullptr); }, "result"));
    faiss::RangeSearchResult noLimits(3, false);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->range_search(3, x, 1, &noLimits); }, "lims"));
    index->range_search(3, data.queries.data(), 1e9, &three);
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->range_search(3, x, 1, &three); }, "result"));
    EXPECT_EQ(three.lims[3], 300u);
}

TEST_F(FusedFlatArguments, Subset) {
    const idx_t good[3] = {0, 99, 5};
    auto subset = [&](idx_t nq, const idx_t* q, idx_t nr, const idx_t* r) {
        index->knn_subset(nq, q, nr, r, 2, distances, labels);
    };
    for (idx_t bad : {idx_t(-1), idx_t(100), idx_t(1) << 40}) {
        const idx_t ids[3] = {0, bad, 5};
        const std::string value = std::to_string(bad);
        EXPECT_TRUE(faissThrowsNaming(
                [&] { subset(3, ids, 3, good); }, "query_ids", value));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { subset(3, good, 3, ids); }, "reference_ids", value));
    }
    EXPECT_TRUE(faissThrowsNaming(
            [&] { subset(-1, good, 3, good); }, "n_query_ids", "-1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { subset(3, good, -1, good); }, "n_reference_ids", "-1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { subset(3, good, 101, nullptr); }, "n_reference_ids", "101"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { subset(101, nullptr, 3, good); }, "n_query_ids", "101"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->knn_subset(3, good, 3, good, 0, distances, labels); },
            "k",
            "0"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->knn_subset(3, good, 3, good, 2, nullptr, labels); },
            "distances"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->knn_subset(3, good, 3, good, 2, distances, nullptr); },
            "labels"));
}

TEST_F(FusedFlatArguments, MetricChangedBehindOurBack) {
    index->metric_type = faiss::METRIC_Canberra;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->search(3, x, 5, distances, labels); },
            "metric",
            "20"));
    index->metric_type = faiss::METRIC_Lp;
    for (float p : {0.f, -2.f, std::numeric_limits<float>::infinity()}) {
        index->metric_arg = p;
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->search(3, x, 5, distances, labels); },
                "metric_arg"));
        faiss::RangeSearchResult found(3);
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->range_search(3, x, 5, &found); }, "metric_arg"));
    }
    index->metric_type = faiss::METRIC_L2;
    index->metric_arg = 0;
}

TEST_F(FusedFlatArguments, Choice) {
    auto search = [&] { index->search(3, x, 5, distances, labels); };
    index->choice.target = "NO_SUCH_TARGET";
    EXPECT_TRUE(faissThrowsNaming(search, "target", "NO_SUCH_TARGET"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->plan(3, 5); }, "target", "NO_SUCH_TARGET"));
    index->choice = {};
    index->choice.queryBlock = -3;
    EXPECT_TRUE(faissThrowsNaming(search, "queryBlock", "-3"));
    index->choice = {};
    index->choice.vectorBlock = -3;
    EXPECT_TRUE(faissThrowsNaming(search, "vectorBlock", "-3"));
    index->choice = {};
    index->choice.depthBlock = -3;
    EXPECT_TRUE(faissThrowsNaming(search, "depthBlock", "-3"));
    index->choice = {};
}

TEST_F(FusedFlatArguments, Add) {
    EXPECT_TRUE(faissThrowsNaming([&] { index->add(-1, x); }, "n", "-1"));
    EXPECT_TRUE(faissThrowsNaming([&] { index->add(1, nullptr); }, "x"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->add(idx_t(1) << 31, x); }, "n", "2147483648"));
    const idx_t ids[3] = {5, 6, 7};
    EXPECT_THROW(index->add_with_ids(3, x, ids), faiss::FaissException);
}

TEST_F(FusedFlatArguments, Reconstruct) {
    for (idx_t key : {idx_t(-1), idx_t(100), idx_t(1) << 40}) {
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct(key, x); },
                "key",
                std::to_string(key)));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct_n(key, 1, x); },
                "i0",
                std::to_string(key)));
    }
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct(0, nullptr); }, "recons"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_n(99, 2, x); }, "ni", "2"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_n(1, INT64_MAX, x); }, "ni"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_n(0, -1, x); }, "ni", "-1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_n(0, 1, nullptr); }, "recons"));

    const idx_t good[2] = {0, 99};
    const idx_t high[2] = {0, 100};
    const idx_t low[2] = {-2, 0};
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_batch(2, high, x); }, "keys", "100"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_batch(2, low, x); }, "keys", "-2"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_batch(2, nullptr, x); }, "keys"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_batch(2, good, nullptr); }, "recons"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_batch(-1, good, x); }, "n", "-1"));

    float residuals[16];
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->compute_residual(x, residuals, 100); }, "key", "100"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->compute_residual_n(2, x, residuals, low); },
            "keys",
            "-2"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->compute_residual_n(2, nullptr, residuals, good); },
            "xs"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->compute_residual_n(2, x, nullptr, good); },
            "residuals"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->compute_residual_n(2, x, residuals, nullptr); },
            "keys"));
}

/// What the kernels throw comes out as FAISS's exception.
TEST_F(FusedFlatArguments, FunctionsThrowFaissExceptions) {
    cpu::KnnProblem<float> problem;
    problem.d = 8;
    problem.numQueries = 1;
    EXPECT_TRUE(faissThrowsNaming([&] { bfKnnFused(problem); }, "k", "0"));
    EXPECT_TRUE(faissThrowsNaming([&] { fusedPlanText(problem); }, "k", "0"));
    cpu::Problem<double> range;
    EXPECT_TRUE(faissThrowsNaming([&] { bfRangeFused(range, 1.); }, "d", "0"));
}

} // namespace
} // namespace faiss_bits::test
