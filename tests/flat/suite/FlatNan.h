#pragma once

#include <limits>
#include <vector>

#include "tests/flat/HostHarness.h"
#include "tests/flat/suite/FlatKind.h"

/// Distances that are NaN are never returned, by any flat index (FlatKind.h).
namespace faiss_bits::test {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Every `step`th vector becomes NaN, of either sign.
template <class Data>
void spoil(Data& data, int64_t step) {
    for (int64_t i = 0; i < data.c.n; i += step) {
        data.vectors[i * data.c.d + i % data.c.d] = i % 2 ? kNan : -kNan;
    }
}

template <class Kind>
class FlatNan : public Kind::Fixture {
    static_assert(FlatKind<Kind>);
};

TYPED_TEST_SUITE_P(FlatNan);

TYPED_TEST_P(FlatNan, SmallVectors) {
    typename TypeParam::Case c;
    c.n = 700;
    c.d = 12;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 2, 16, 17, 60}) {
        c.q = q;
        for (const auto& one : TypeParam::casesOf(c)) {
            typename TypeParam::Data data(one);
            spoil(data, 7); // 600 numbers are left
            const auto index = data.makeIndex();
            for (int64_t k : {1, 599, 600, 601, 700, 1000}) {
                const auto out = searchOnHost(*index, data.queries, k);
                data.expectExact(out, k);
                for (int64_t i = 0; i < q * k; ++i) {
                    if (i % k < 600) {
                        ASSERT_NE(out.labels[i] % 7, 0) << one << " k=" << k;
                    } else {
                        ASSERT_EQ(out.labels[i], -1) << one << " k=" << k;
                    }
                }
                ASSERT_TRUE(sameOutput(
                        TypeParam::searchInPlace(*index, data.queries, k), out))
                        << one << " k=" << k;
            }
        }
    }
}

TYPED_TEST_P(FlatNan, SmallVectorsAndALargeK) {
    typename TypeParam::Case c;
    c.n = 7000;
    c.d = 4;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const auto& one : TypeParam::casesOf(c)) {
            typename TypeParam::Data data(one);
            spoil(data, 7); // 6000 numbers are left
            const auto index = data.makeIndex();
            for (int64_t k : {5999, 6000, 6001, 7000, 8000}) {
                data.expectExact(searchOnHost(*index, data.queries, k), k);
            }
        }
    }
}

TYPED_TEST_P(FlatNan, SmallQueries) {
    typename TypeParam::Case c;
    c.n = 500;
    c.d = 6;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 9, 40}) {
        c.q = q;
        for (const auto& one : TypeParam::casesOf(c)) {
            typename TypeParam::Data data(one);
            data.queries[(q / 2) * c.d + 3] = kNan;
            const auto index = data.makeIndex();
            for (int64_t k : {1, 20, 600, 3000}) {
                const auto out = searchOnHost(*index, data.queries, k);
                data.expectExact(out, k); // the others' results are theirs
                for (int64_t j = 0; j < k; ++j) {
                    ASSERT_EQ(out.labels[(q / 2) * k + j], -1)
                            << one << " k=" << k;
                }
            }
        }
    }
}

TYPED_TEST_P(FlatNan, SmallNothingButNan) {
    typename TypeParam::Case c;
    c.n = 300;
    c.d = 3;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const auto& one : TypeParam::casesOf(c)) {
            typename TypeParam::Data data(one);
            spoil(data, 1);
            const auto index = data.makeIndex();
            for (int64_t k : {1, 300, 2500}) {
                data.expectExact(searchOnHost(*index, data.queries, k), k);
            }
            std::vector<int64_t> labels(q * 5, 7);
            index->assign(q, data.queries.data(), labels.data(), 5);
            ASSERT_EQ(labels, std::vector<int64_t>(q * 5, -1)) << one;
        }
    }
}

REGISTER_TYPED_TEST_SUITE_P(
        FlatNan,
        SmallVectors,
        SmallVectorsAndALargeK,
        SmallQueries,
        SmallNothingButNan);

} // namespace faiss_bits::test
