/// Exactness of IndexFusedFlat over its shapes and metrics.

#include <cmath>

#include "kernels/cpu/Targets.h"
#include "tests/flat/suite/CpuFlatKind.h"
#include "tests/flat/suite/FlatSearch.h"

namespace faiss_bits::test {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(FusedFlatSearch, FlatSearch, CpuFlatKind);

TEST(FusedFlatSearch, NoQueriesInOtherCalls) {
    const FusedData data(FusedCase{});
    const auto index = data.makeIndex();
    index->knn_subset(0, nullptr, 0, nullptr, 5, nullptr, nullptr);
    faiss::RangeSearchResult found(0);
    index->range_search(0, nullptr, 1, &found);
    EXPECT_EQ(found.lims[0], 0u);
    EXPECT_EQ(index->ntotal, data.c.n);
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
            // No distance is less than NaN: refused, as by every other index.
            faiss::RangeSearchResult found(c.q);
            try {
                index->range_search(
                        c.q, data.queries.data(), std::nanf(""), &found);
                ADD_FAILURE() << "took a radius of NaN";
            } catch (const faiss::FaissException& error) {
                EXPECT_NE(
                        std::string(error.what()).find("radius = NaN"),
                        std::string::npos)
                        << error.what();
            }
            EXPECT_EQ(found.labels, nullptr);
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
