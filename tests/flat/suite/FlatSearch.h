#pragma once

#include <utility>
#include <vector>

#include "faiss_bits/common/FaissCompat.h"
#include "tests/flat/HostHarness.h"
#include "tests/flat/suite/FlatKind.h"

/// Exactness of every flat index (FlatKind.h) over its shapes and metrics.
namespace faiss_bits::test {

template <class Kind>
class FlatSearch : public Kind::Fixture {
    static_assert(FlatKind<Kind>);

   protected:
    using Case = typename Kind::Case;

    /// One case.
    static void expectSearches(const Case& c, const std::vector<int64_t>& ks) {
        const typename Kind::Data data(c);
        const auto index = data.makeIndex();
        ASSERT_EQ(index->ntotal, c.n);
        for (int64_t k : ks) {
            const SearchOutput out = searchOnHost(*index, data.queries, k);
            if (c.fill == Fill::Integers) {
                data.expectExact(out, k);
            } else {
                data.expectNearest(out, k);
            }
            ASSERT_TRUE(sameOutput(
                    Kind::searchInPlace(*index, data.queries, k), out))
                    << c << " k=" << k;
        }
    }

    /// The case with every metric and storage, and these numbers of queries.
    static void expectSearches(
            Case c,
            const std::vector<int64_t>& qs,
            const std::vector<int64_t>& ks) {
        for (int64_t q : qs) {
            c.q = q;
            for (const Case& one : Kind::casesOf(c)) {
                expectSearches(one, ks);
            }
        }
    }

    /// Every way into a search finds what search() finds.
    static void expectSameOfEveryCall(const Case& c, int64_t k) {
        const typename Kind::Data data(c);
        const auto index = data.makeIndex();
        const auto expected = searchOnHost(*index, data.queries, k);
        data.expectExact(expected, k);
        std::vector<int64_t> labels(c.q * k, -123);
        index->assign(c.q, data.queries.data(), labels.data(), k);
        EXPECT_EQ(labels, expected.labels) << c << " k=" << k;

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
        EXPECT_TRUE(sameOutput(out, expected)) << c << " k=" << k;
        for (int64_t i = 0; i < c.q * k * c.d; ++i) {
            const int64_t label = out.labels[i / c.d];
            const float want = label < 0 ? Kind::kEmptyComponent
                                         : data.vectors[label * c.d + i % c.d];
            ASSERT_TRUE(sameBits(found[i], want)) << c << " k=" << k;
        }
#if FAISS_BITS_FAISS_HAS_NUMERIC_TYPE
        index->search_ex(
                c.q,
                data.queries.data(),
                faiss::NumericType::Float32,
                k,
                out.distances.data(),
                out.labels.data());
        EXPECT_TRUE(sameOutput(out, expected)) << c << " k=" << k;
#endif
    }
};

TYPED_TEST_SUITE_P(FlatSearch);

TYPED_TEST_P(FlatSearch, SmallOfEveryKind) {
    typename TypeParam::Case c;
    c.n = 500;
    c.d = 20;
    for (Fill fill : {Fill::Uniform, Fill::Integers}) {
        c.fill = fill;
        this->expectSearches(c, {1, 5, 40}, {1, 10, 400, 600});
    }
}

TYPED_TEST_P(FlatSearch, EveryK) {
    typename TypeParam::Case c;
    c.n = 5000;
    c.d = 33;
    this->expectSearches(
            c, {3, 40}, {1, 2, 31, 32, 33, 100, 1023, 1024, 2047, 2048});
}

/// FAISS's own limit on a GPU is 2048: beyond it, up to ntotal and above it.
TYPED_TEST_P(FlatSearch, AnyK) {
    typename TypeParam::Case c;
    c.n = 5000;
    c.d = 12;
    for (Fill fill : {Fill::Uniform, Fill::Integers}) {
        c.fill = fill;
        this->expectSearches(
                c, {1, 16, 40}, {2049, 4096, 4999, 5000, 5001, 9000});
    }
}

TYPED_TEST_P(FlatSearch, AllOfManyVectors) {
    typename TypeParam::Case c;
    c.n = 300007;
    c.d = 4;
    c.fill = Fill::Integers;
    this->expectSearches(c, {3}, {100000, c.n - 1, c.n, c.n + 1});
}

TYPED_TEST_P(FlatSearch, SmallAnyKInEveryCall) {
    typename TypeParam::Case c;
    c.d = 6;
    c.q = 4;
    c.fill = Fill::Integers;
    for (const auto& [n, ks] :
         {std::pair<int64_t, std::vector<int64_t>>{30, {1, 7, 35}},
          {2500, {2049, 2500}}}) {
        c.n = n;
        for (const auto& one : TypeParam::casesOf(c)) {
            for (int64_t k : ks) {
                this->expectSameOfEveryCall(one, k);
            }
        }
    }
}

TYPED_TEST_P(FlatSearch, EveryDimension) {
    typename TypeParam::Case c;
    c.n = TypeParam::fewer(2000);
    for (int d :
         {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33, 64, 128, 130, 768, 1537}) {
        c.d = d;
        this->expectSearches(c, {2, 33}, {1, 20});
    }
}

TYPED_TEST_P(FlatSearch, EveryBatch) {
    typename TypeParam::Case c;
    c.n = TypeParam::fewer(3000);
    c.d = 24;
    this->expectSearches(
            c,
            {1,  2,  3,  7,  8,  9,  11, 12,  13,  15,  16, 17,
             24, 25, 31, 32, 33, 64, 65, 100, 255, 256, 257},
            {1, 50});
}

TYPED_TEST_P(FlatSearch, EverySize) {
    typename TypeParam::Case c;
    c.d = 5;
    c.fill = Fill::Integers;
    for (int64_t n : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 99}) {
        c.n = n;
        this->expectSearches(c, {1, 33}, {1, n, n + 1, 2048});
    }
}

TYPED_TEST_P(FlatSearch, ManyVectors) {
    typename TypeParam::Case c;
    c.n = 200003;
    c.d = 16;
    c.fill = Fill::Integers;
    this->expectSearches(c, {1, 20}, {1, 100, 2048});
}

TYPED_TEST_P(FlatSearch, SmallShortResultsAreFilledUp) {
    typename TypeParam::Case c;
    c.d = 8;
    c.fill = Fill::Integers;
    for (int64_t n : {1, 2, 31, 99}) {
        c.n = n;
        this->expectSearches(c, {1, 33}, {100, 2048, 5000});
    }
}

TYPED_TEST_P(FlatSearch, SmallEmptyIndex) {
    typename TypeParam::Case c;
    c.n = 0;
    c.d = 5;
    this->expectSearches(c, {1, 40}, {1, 7, 2048, 5000});
}

TYPED_TEST_P(FlatSearch, SmallNoQueries) {
    const typename TypeParam::Case c;
    const typename TypeParam::Data data(c);
    const auto index = data.makeIndex();
    index->search(0, nullptr, 5, nullptr, nullptr);
    index->assign(0, nullptr, nullptr, 5);
    index->add(0, nullptr);
    EXPECT_EQ(index->ntotal, c.n);
}

TYPED_TEST_P(FlatSearch, SmallAssignGivesTheLabels) {
    typename TypeParam::Case c;
    c.n = 1000;
    c.d = 32;
    c.fill = Fill::Integers;
    const typename TypeParam::Data data(c);
    const auto index = data.makeIndex();
    for (int64_t k : {1, 7, 2048}) {
        std::vector<int64_t> labels(c.q * k, -123);
        index->assign(c.q, data.queries.data(), labels.data(), k);
        EXPECT_EQ(labels, searchOnHost(*index, data.queries, k).labels);
    }
}

/// The same ids as FAISS's own index where no two distances are near.
TYPED_TEST_P(FlatSearch, AgreesWithFaiss) {
    typename TypeParam::Case c;
    c.n = 4000;
    c.d = 64;
    const int k = 10;
    for (auto one : TypeParam::casesOf(c)) {
        int same = 0;
        int all = 0;
        for (int64_t q : {3, 50}) {
            one.q = q;
            const typename TypeParam::Data data(one);
            const auto ours = data.makeIndex();
            const auto theirs = TypeParam::faissIndex(data);
            const auto a = searchOnHost(*ours, data.queries, k);
            const auto b = searchOnHost(*theirs, data.queries, k);
            for (size_t i = 0; i < a.labels.size(); ++i) {
                same += a.labels[i] == b.labels[i];
                ++all;
            }
        }
        EXPECT_GE(same, int(all * TypeParam::agreement(one))) << one;
    }
}

REGISTER_TYPED_TEST_SUITE_P(
        FlatSearch,
        SmallOfEveryKind,
        EveryK,
        AnyK,
        AllOfManyVectors,
        SmallAnyKInEveryCall,
        EveryDimension,
        EveryBatch,
        EverySize,
        ManyVectors,
        SmallShortResultsAreFilledUp,
        SmallEmptyIndex,
        SmallNoQueries,
        SmallAssignGivesTheLabels,
        AgreesWithFaiss);

} // namespace faiss_bits::test
