#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/flat/HostHarness.h"
#include "tests/flat/suite/FlatKind.h"

/// Ties, infinities and repeatability of every flat index (FlatKind.h).
namespace faiss_bits::test {

template <class Kind>
class FlatValues : public Kind::Fixture {
    static_assert(FlatKind<Kind>);

   protected:
    /// Few and many queries take different paths.
    const std::vector<int64_t> batches = {1, 2, 16, 17, 60};
};

TYPED_TEST_SUITE_P(FlatValues);

TYPED_TEST_P(FlatValues, SmallTiesGoToTheLowerId) {
    typename TypeParam::Case c;
    c.n = 3000;
    c.d = 8;
    c.fill = Fill::Integers;
    for (int64_t q : this->batches) {
        c.q = q;
        for (const auto& one : TypeParam::casesOf(c)) {
            typename TypeParam::Data data(one);
            // Every vector thirty times, a hundred apart.
            for (int64_t i = 100; i < c.n; ++i) {
                for (int j = 0; j < c.d; ++j) {
                    data.vectors[i * c.d + j] =
                            data.vectors[(i % 100) * c.d + j];
                }
            }
            const auto index = data.makeIndex();
            for (int64_t k : {1, 29, 31, 500, 2048, 2900, 3000}) {
                data.expectExact(searchOnHost(*index, data.queries, k), k);
            }
        }
    }
}

TYPED_TEST_P(FlatValues, SmallAllVectorsEqual) {
    typename TypeParam::Case c;
    c.n = 5000;
    c.d = 4;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const auto& one : TypeParam::casesOf(c)) {
            typename TypeParam::Data data(one);
            std::fill(data.vectors.begin(), data.vectors.end(), 2.f);
            const auto index = data.makeIndex();
            for (int64_t k : {1, 100, 2048, 2049, 5000}) {
                const auto out = searchOnHost(*index, data.queries, k);
                data.expectExact(out, k);
                for (int64_t i = 0; i < q * k; ++i) {
                    ASSERT_EQ(out.labels[i], i % k) << one << " k=" << k;
                }
            }
        }
    }
}

/// The nearest come last, or first: the worst and the best order for a queue
/// or a heap.
TYPED_TEST_P(FlatValues, SortedVectors) {
    typename TypeParam::Case c;
    c.n = 40000;
    c.d = 1;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const auto& one : TypeParam::casesOf(c)) {
            for (bool ascending : {true, false}) {
                typename TypeParam::Data data(one);
                for (int64_t i = 0; i < c.n; ++i) {
                    // Exact in float16, with ties.
                    data.vectors[i] =
                            float((ascending ? i : c.n - i) / 40) * 2.f;
                }
                std::fill(data.queries.begin(), data.queries.end(), 1.f);
                const auto index = data.makeIndex();
                data.expectExact(searchOnHost(*index, data.queries, 300), 300);
            }
        }
    }
}

TYPED_TEST_P(FlatValues, InfiniteVectors) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    typename TypeParam::Case c;
    c.n = 800;
    c.d = 5;
    for (int64_t q : this->batches) {
        c.q = q;
        for (const auto& one : TypeParam::casesOf(c)) {
            typename TypeParam::Data data(one);
            for (int64_t i = 3; i < c.n; i += 10) {
                data.vectors[i * c.d] = i % 20 == 3 ? kInf : -kInf;
            }
            const auto index = data.makeIndex();
            for (int64_t k : {1, 100, 800}) {
                data.expectNearest(searchOnHost(*index, data.queries, k), k);
            }
        }
    }
}

/// Far from the origin the expanded form loses digits, but not its bound.
TYPED_TEST_P(FlatValues, DistancesAreNeverNegative) {
    typename TypeParam::Case c;
    c.n = 2000;
    c.d = 64;
    c.q = 60;
    typename TypeParam::Data data(c);
    for (float& value : data.vectors) {
        value += 1000.f;
    }
    std::copy(
            data.vectors.begin(),
            data.vectors.begin() + c.q * c.d,
            data.queries.begin());
    const auto index = data.makeIndex();
    const auto out = searchOnHost(*index, data.queries, 100);
    data.expectNearest(out, 100);
    for (float distance : out.distances) {
        ASSERT_GE(distance, 0.f);
    }
}

TYPED_TEST_P(FlatValues, SameBitsEveryRun) {
    typename TypeParam::Case c;
    c.n = 30000;
    c.d = 40;
    for (int64_t q : this->batches) {
        c.q = q;
        for (const auto& one : TypeParam::casesOf(c)) {
            const typename TypeParam::Data data(one);
            const auto index = data.makeIndex();
            for (int64_t k : {10, 2048, 7000}) {
                auto search = [&] {
                    return TypeParam::searchInPlace(*index, data.queries, k);
                };
                const SearchOutput first = search();
                TypeParam::forEveryRun([&](const std::string& run) {
                    EXPECT_TRUE(sameOutput(search(), first))
                            << one << " k=" << k << " " << run;
                });
            }
        }
    }
}

/// A query's result does not depend on its companions. With integers the two
/// forms of a distance agree to the bit, so this is exact.
TYPED_TEST_P(FlatValues, ResultsDoNotDependOnTheBatch) {
    typename TypeParam::Case c;
    c.n = 10000;
    c.d = 24;
    c.q = 70;
    c.fill = Fill::Integers;
    const int k = 50;
    for (const auto& one : TypeParam::casesOf(c)) {
        if (TypeParam::roundsIntegers(one)) {
            continue;
        }
        const typename TypeParam::Data data(one);
        const auto index = data.makeIndex();
        const auto together = searchOnHost(*index, data.queries, k);
        for (int64_t i : {0, 1, 35, 69}) {
            const std::vector<float> query(
                    data.queries.begin() + i * c.d,
                    data.queries.begin() + (i + 1) * c.d);
            const auto alone = searchOnHost(*index, query, k);
            for (int j = 0; j < k; ++j) {
                ASSERT_EQ(alone.labels[j], together.labels[i * k + j]) << one;
                ASSERT_EQ(alone.distances[j], together.distances[i * k + j])
                        << one;
            }
        }
    }
}

REGISTER_TYPED_TEST_SUITE_P(
        FlatValues,
        SmallTiesGoToTheLowerId,
        SmallAllVectorsEqual,
        SortedVectors,
        InfiniteVectors,
        DistancesAreNeverNegative,
        SameBitsEveryRun,
        ResultsDoNotDependOnTheBatch);

} // namespace faiss_bits::test
