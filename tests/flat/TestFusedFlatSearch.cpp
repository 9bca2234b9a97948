/// Exactness of IndexFusedFlat over its shapes and metrics.

#include <cmath>

#include <faiss/IndexFlat.h>

#include "kernels/cpu/Targets.h"
#include "tests/flat/FusedHarness.h"

namespace faiss_bits::test {
namespace {

void expectSearches(const FusedCase& c, const std::vector<int64_t>& ks) {
    const FusedData data(c);
    const auto index = data.makeIndex();
    ASSERT_EQ(index->ntotal, c.n);
    for (int64_t k : ks) {
        data.expectNearest(searchOnHost(*index, data.queries, k), k);
    }
}

TEST(FusedFlatSearch, EveryMetricAndFill) {
    FusedCase c;
    for (Fill fill : {Fill::Uniform, Fill::Integers}) {
        c.fill = fill;
        for (int64_t q : {1, 5, 40}) {
            c.q = q;
            for (const FusedCase& one : metricsOf(c)) {
                expectSearches(one, {1, 10, 400});
            }
        }
    }
}

TEST(FusedFlatSearch, EveryK) {
    FusedCase c;
    c.n = 3000;
    c.d = 33;
    for (int64_t q : {3, 40}) {
        c.q = q;
        for (const FusedCase& one : metricsOf(c)) {
            expectSearches(
                    one,
                    {1,
                     2,
                     31,
                     32,
                     33,
                     100,
                     1023,
                     1024,
                     2048,
                     2049,
                     2999,
                     3000,
                     3001,
                     6000});
        }
    }
}

TEST(FusedFlatSearch, EveryDimension) {
    FusedCase c;
    c.n = 300;
    for (int d :
         {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33, 64, 128, 130, 768, 1537}) {
        c.d = d;
        for (int64_t q : {2, 33}) {
            c.q = q;
            for (const FusedCase& one : metricsOf(c)) {
                expectSearches(one, {1, 20});
            }
        }
    }
}

TEST(FusedFlatSearch, EveryBatch) {
    FusedCase c;
    c.n = 700;
    c.d = 12;
    for (int64_t q :
         {1, 2, 3, 7, 8, 9, 11, 12, 13, 16, 17, 24, 25, 64, 65, 257}) {
        c.q = q;
        for (const FusedCase& one : metricsOf(c)) {
            expectSearches(one, {1, 50});
        }
    }
}

TEST(FusedFlatSearch, EverySize) {
    FusedCase c;
    c.d = 5;
    c.fill = Fill::Integers;
    for (int64_t n : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 99}) {
        c.n = n;
        for (int64_t q : {1, 33}) {
            c.q = q;
            for (const FusedCase& one : metricsOf(c)) {
                expectSearches(one, {1, n, n + 1, 2048});
            }
        }
    }
}

TEST(FusedFlatSearch, ManyVectors) {
    FusedCase c;
    c.n = 100003;
    c.d = 4;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 20}) {
        c.q = q;
        for (const FusedCase& one : metricsOf(c)) {
            expectSearches(one, {1, 100, 2048});
        }
    }
    c.q = 2;
    expectSearches(c, {c.n - 1, c.n, c.n + 1});
}

TEST(FusedFlatSearch, EmptyIndex) {
    FusedCase c;
    c.n = 0;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const FusedCase& one : metricsOf(c)) {
            expectSearches(one, {1, 7, 2048});
        }
    }
}

TEST(FusedFlatSearch, NoQueries) {
    const FusedData data(FusedCase{});
    const auto index = data.makeIndex();
    index->search(0, nullptr, 5, nullptr, nullptr);
    index->assign(0, nullptr, nullptr, 5);
    index->knn_subset(0, nullptr, 0, nullptr, 5, nullptr, nullptr);
    index->add(0, nullptr);
    faiss::RangeSearchResult found(0);
    index->range_search(0, nullptr, 1, &found);
    EXPECT_EQ(found.lims[0], 0u);
    EXPECT_EQ(index->ntotal, data.c.n);
}

TEST(FusedFlatSearch, OtherCallsSearchTheSame) {
    FusedCase c;
    c.n = 30;
    c.d = 6;
    c.q = 4;
    c.fill = Fill::Integers;
    for (const FusedCase& one : metricsOf(c)) {
        const FusedData data(one);
        const auto index = data.makeIndex();
        for (int64_t k : {1, 7, 35}) {
            const auto expected = searchOnHost(*index, data.queries, k);
            std::vector<int64_t> labels(c.q * k, -123);
            index->assign(c.q, data.queries.data(), labels.data(), k);
            EXPECT_EQ(labels, expected.labels) << one;

            SearchOutput out;
            out.distances.resize(c.q * k);
            out.labels.resize(c.q * k);
            std::vector<float> found(c.q * k * c.d);
            index->search_and_reconstruct(
                    c.q,
                    data.queries.data(),
                    k,
                    out.distances.data(),
                    out.labels.data(),
                    found.data());
            EXPECT_TRUE(sameOutput(out, expected)) << one << " k=" << k;
            for (int64_t i = 0; i < c.q * k * c.d; ++i) {
                const int64_t label = out.labels[i / c.d];
                // FAISS fills up with NaN.
                const float want = label < 0
                        ? std::numeric_limits<float>::quiet_NaN()
                        : data.vectors[label * c.d + i % c.d];
                ASSERT_TRUE(sameBits(found[i], want)) << one << " k=" << k;
            }
#if FAISS_BITS_FAISS_HAS_NUMERIC_TYPE
            index->search_ex(
                    c.q,
                    data.queries.data(),
                    faiss::NumericType::Float32,
                    k,
                    out.distances.data(),
                    out.labels.data());
            EXPECT_TRUE(sameOutput(out, expected)) << one << " k=" << k;
#endif
        }
    }
}

/// The same ids as FAISS's own index where no two distances are near.
TEST(FusedFlatSearch, AgreesWithFaiss) {
    FusedCase c;
    c.n = 2000;
    c.d = 64;
    for (int64_t q : {3, 50}) {
        c.q = q;
        for (const FusedCase& one : metricsOf(c)) {
            const FusedData data(one);
            faiss::IndexFlat theirs(c.d, one.metric);
            theirs.metric_arg = one.metricArg;
            theirs.add(c.n, data.vectors.data());
            const int k = 10;
            const auto a = searchOnHost(*data.makeIndex(), data.queries, k);
            const auto b = searchOnHost(theirs, data.queries, k);
            int same = 0;
            for (size_t i = 0; i < a.labels.size(); ++i) {
                same += a.labels[i] == b.labels[i];
            }
            EXPECT_GE(same, int(a.labels.size() * 0.99)) << one;
        }
    }
}

TEST(FusedFlatSearch, RangeSearch) {
    FusedCase c;
    c.n = 600;
    for (Fill fill : {Fill::Uniform, Fill::Integers}) {
        c.fill = fill;
        for (int64_t q : {1, 17, 60}) {
            c.q = q;
            for (const FusedCase& one : metricsOf(c)) {
                const FusedData data(one);
                const auto index = data.makeIndex();
                for (int64_t count : {0, 1, 40, 600}) {
                    const float radius = data.radiusFor(count);
                    faiss::RangeSearchResult found(q);
                    index->range_search(q, data.queries.data(), radius, &found);
                    data.expectInRange(found, radius);
                }
            }
        }
    }
}

TEST(FusedFlatSearch, RangeSearchOfNothingAndOfAll) {
    for (int64_t n : {0, 50}) {
        FusedCase c;
        c.n = n;
        for (const FusedCase& one : metricsOf(c)) {
            const FusedData data(one);
            const auto index = data.makeIndex();
            for (float radius :
                 {-std::numeric_limits<float>::infinity(),
                  std::numeric_limits<float>::infinity()}) {
                faiss::RangeSearchResult found(c.q);
                index->range_search(c.q, data.queries.data(), radius, &found);
                data.expectInRange(found, radius);
                const bool all = (radius > 0) != data.largest();
                EXPECT_EQ(int64_t(found.lims[c.q]), all ? c.q * n : 0);
            }
            // No distance is less than NaN.
            faiss::RangeSearchResult found(c.q);
            index->range_search(
                    c.q, data.queries.data(), std::nanf(""), &found);
            EXPECT_EQ(found.lims[c.q], 0u);
        }
    }
}

TEST(FusedFlatSearch, Subset) {
    FusedCase c;
    c.n = 400;
    c.fill = Fill::Integers;
    for (const FusedCase& one : metricsOf(c)) {
        FusedData data(one);
        const auto index = data.makeIndex();
        // Every third vector in a mixed order, some of them as queries, twice.
        std::vector<idx_t> references;
        for (idx_t i = 0; i < c.n; i += 3) {
            references.push_back((i * 7) % 402 % c.n);
        }
        std::sort(references.begin(), references.end());
        references.erase(
                std::unique(references.begin(), references.end()),
                references.end());
        auto ascending = references;
        std::mt19937 random(3);
        std::shuffle(references.begin(), references.end(), random);
        std::vector<idx_t> asked(references.begin(), references.begin() + 30);
        asked.insert(asked.end(), {0, c.n - 1, asked[0]});

        data.c.q = asked.size();
        data.queries.clear();
        for (idx_t id : asked) {
            const float* row = index->get_xb() + id * c.d;
            data.queries.insert(data.queries.end(), row, row + c.d);
        }
        for (idx_t k : {idx_t(1), idx_t(5), idx_t(references.size() + 2)}) {
            SearchOutput out;
            out.distances.resize(asked.size() * k);
            out.labels.resize(asked.size() * k);
            index->knn_subset(
                    asked.size(),
                    asked.data(),
                    references.size(),
                    references.data(),
                    k,
                    out.distances.data(),
                    out.labels.data());
            data.expectNearest(out, k, &ascending);
        }
    }
}

TEST(FusedFlatSearch, SubsetWithoutLists) {
    FusedCase c;
    c.n = 90;
    c.q = 60;
    FusedData data(c);
    const auto index = data.makeIndex();
    data.queries.assign(data.vectors.begin(), data.vectors.begin() + c.q * c.d);
    SearchOutput out;
    out.distances.resize(c.q * 4);
    out.labels.resize(c.q * 4);
    for (idx_t references : {c.n, idx_t(25), idx_t(0)}) {
        index->knn_subset(
                c.q,
                nullptr,
                references,
                nullptr,
                4,
                out.distances.data(),
                out.labels.data());
        const auto ids = firstIds(references);
        data.expectNearest(out, 4, &ids);
    }
}

/// Whatever is forced is used, or refused; the answers stay right.
TEST(FusedFlatSearch, ForcedChoices) {
    FusedCase c;
    c.n = 1200;
    c.d = 40;
    for (int64_t q : {1, 30}) {
        c.q = q;
        for (const FusedCase& one : metricsOf(c)) {
            const FusedData data(one);
            const auto index = data.makeIndex();
            for (auto variant :
                 {cpu::Variant::Buffered,
                  cpu::Variant::Var1,
                  cpu::Variant::Var5,
                  cpu::Variant::Var6,
                  cpu::Variant::Direct}) {
                for (const std::string& target : cpu::targetNames()) {
                    index->choice = {};
                    index->choice.variant = variant;
                    index->choice.target = target;
                    const std::string plan = index->plan(q, 15);
                    EXPECT_TRUE(hasWord(plan, nameOf(variant))) << plan;
                    EXPECT_NE(plan.find(target), std::string::npos) << plan;
                    data.expectNearest(
                            searchOnHost(*index, data.queries, 15), 15);
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
