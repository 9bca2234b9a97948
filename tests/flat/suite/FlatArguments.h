#pragma once

#include <memory>
#include <string>
#include <vector>

#include <faiss/IndexFlat.h>
#include <faiss/IndexIVF.h>

#include "kernels/common/Types.h"
#include "tests/flat/HostHarness.h"
#include "tests/flat/suite/FlatKind.h"

/// Every bad argument of every flat index (FlatKind.h): a FaissException that
/// names it, and an index that is what it was.
namespace faiss_bits::test {

template <class Kind>
class FlatArguments : public Kind::Fixture {
    static_assert(FlatKind<Kind>);

   protected:
    void prepare() override {
        typename Kind::Case c;
        c.n = 100;
        c.d = 8;
        c.q = 3;
        c.fill = Fill::Integers;
        data = std::make_unique<typename Kind::Data>(c);
        index = data->makeIndex();
    }

    void TearDown() override {
        if (index) {
            // Still in use, as if nothing had been asked.
            EXPECT_EQ(index->ntotal, 100);
            data->expectExact(searchOnHost(*index, data->queries, 5), 5);
        }
        index.reset();
        Kind::Fixture::TearDown();
    }

    std::unique_ptr<typename Kind::Data> data;
    std::unique_ptr<typename Kind::Index> index;
    float distances[30];
    idx_t labels[30];
    float x[24] = {};
};

TYPED_TEST_SUITE_P(FlatArguments);

TYPED_TEST_P(FlatArguments, SmallConstructors) {
    for (int d : {0, -4}) {
        EXPECT_TRUE(faissThrowsNaming(
                [&] { TypeParam::make(d, faiss::METRIC_L2); },
                TypeParam::kDimensions,
                std::to_string(d)));
    }
    for (auto metric : otherMetrics()) {
        const std::string value = std::to_string(int(metric));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { TypeParam::make(4, metric); }, "metric", value));
        const faiss::IndexFlat other(4, metric);
        EXPECT_TRUE(faissThrowsNaming(
                [&] { TypeParam::copyOf(other); }, "metric", value));
    }
    const faiss::IndexFlat noDimensions;
    EXPECT_TRUE(faissThrowsNaming(
            [&] { TypeParam::copyOf(noDimensions); }, "d", "0"));
}

TYPED_TEST_P(FlatArguments, SmallSearch) {
    auto& index = this->index;
    float* x = this->x;
    float* distances = this->distances;
    idx_t* labels = this->labels;
    std::vector<idx_t> badK = TypeParam::tooLargeK();
    badK.insert(badK.end(), {0, -1, -(idx_t(1) << 40)});
    for (idx_t k : badK) {
        const std::string value = std::to_string(k);
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->search(3, x, k, distances, labels); },
                "k",
                value));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->assign(3, x, labels, k); }, "k", value));
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
}

TYPED_TEST_P(FlatArguments, SmallSearchParameters) {
    auto& index = this->index;
    auto& queries = this->data->queries;
    SearchOutput out;
    out.distances.resize(15);
    out.labels.resize(15);
    auto search = [&](const faiss::SearchParameters& params) {
        index->search(
                3,
                queries.data(),
                5,
                out.distances.data(),
                out.labels.data(),
                &params);
    };
    search(faiss::SearchParameters{});
    EXPECT_TRUE(sameOutput(out, searchOnHost(*index, queries, 5)));
    const faiss::IVFSearchParameters other;
    EXPECT_TRUE(faissThrowsNaming([&] { search(other); }, "params"));
}

TYPED_TEST_P(FlatArguments, SmallMetricChangedBehindOurBack) {
    auto& index = this->index;
    for (auto metric : otherMetrics()) {
        index->metric_type = metric;
        EXPECT_TRUE(faissThrowsNaming(
                [&] {
                    index->search(3, this->x, 5, this->distances, this->labels);
                },
                "metric",
                std::to_string(int(metric))));
    }
    index->metric_type = faiss::METRIC_L2;
}

TYPED_TEST_P(FlatArguments, SmallAdd) {
    auto& index = this->index;
    float* x = this->x;
    EXPECT_TRUE(faissThrowsNaming([&] { index->add(-1, x); }, "n", "-1"));
    EXPECT_TRUE(faissThrowsNaming([&] { index->add(1, nullptr); }, "x"));
    const idx_t tooMany = TypeParam::tooManyVectors();
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->add(tooMany, x); }, "n", std::to_string(tooMany)));
    const idx_t ids[3] = {5, 6, 7};
    EXPECT_THROW(index->add_with_ids(3, x, ids), faiss::FaissException);
}

TYPED_TEST_P(FlatArguments, SmallReconstruct) {
    const std::string out = TypeParam::kOutput;
    const std::string count = TypeParam::kCount;
    auto& index = this->index;
    float* x = this->x;
    for (idx_t key : {idx_t(-1), idx_t(100), idx_t(1) << 40}) {
        const std::string value = std::to_string(key);
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct(key, x); }, "key", value));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct_n(key, 1, x); }, "i0", value));
    }
    EXPECT_TRUE(
            faissThrowsNaming([&] { index->reconstruct(0, nullptr); }, out));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_n(99, 2, x); }, count, "2"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_n(1, INT64_MAX, x); }, count));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_n(0, -1, x); }, count, "-1"));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_n(0, 1, nullptr); }, out));

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
            [&] { index->reconstruct_batch(2, good, nullptr); }, out));
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->reconstruct_batch(-1, good, x); }, "n", "-1"));

    float residuals[16];
    EXPECT_TRUE(faissThrowsNaming(
            [&] { index->compute_residual(x, residuals, 100); },
            TypeParam::kResidualKey,
            "100"));
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

REGISTER_TYPED_TEST_SUITE_P(
        FlatArguments,
        SmallConstructors,
        SmallSearch,
        SmallSearchParameters,
        SmallMetricChangedBehindOurBack,
        SmallAdd,
        SmallReconstruct);

} // namespace faiss_bits::test
