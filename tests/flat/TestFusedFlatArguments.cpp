/// Every bad argument: a FaissException that names it, and an index that is
/// what it was.

#include <cmath>
#include <utility>

#include "faiss_bits/flat/FusedDistance.h"
#include "tests/flat/suite/CpuFlatKind.h"
#include "tests/flat/suite/FlatArguments.h"

namespace faiss_bits::test {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(FusedFlatArguments, FlatArguments, CpuFlatKind);

/// What only the CPU index takes.
class FusedFlatArguments : public FlatArguments<CpuFlatKind> {};

TEST_F(FusedFlatArguments, Plan) {
    for (idx_t k : {idx_t(0), idx_t(-1), -(idx_t(1) << 40)}) {
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->plan(3, k); }, "k", std::to_string(k)));
    }
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
    index->range_search(3, data->queries.data(), 1e9, &three);
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

TEST_F(FusedFlatArguments, MetricArgOfMetricsWithout) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        EXPECT_TRUE(faissThrowsNaming(
                [&] { IndexFusedFlat(4, metric, 3); }, "metricArg", "3"));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { IndexFusedFlat(4, metric, NAN); }, "metricArg"));
        EXPECT_EQ(IndexFusedFlat(4, metric, 0).metric_arg, 0);
    }
    EXPECT_EQ(IndexFusedFlat(4, faiss::METRIC_Lp, 3).metric_arg, 3);
    // Set on an index it is not read, as in FAISS, and a copy has it.
    faiss::IndexFlat theirs(4, faiss::METRIC_L2);
    theirs.metric_arg = 3;
    const IndexFusedFlat copy(theirs);
    EXPECT_EQ(copy.metric_arg, 3);
    EXPECT_EQ(IndexFusedFlat(copy).metric_arg, 3);
    EXPECT_EQ(IndexFusedFlat(std::move(theirs)).metric_arg, 3);
}

TEST_F(FusedFlatArguments, MetricArgChangedBehindOurBack) {
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
