/// Searches by the canonical distances of all pairs where one block has all
/// keys of a query in registers: four, sixteen or thirty-two a thread.

#include <functional>

#include "kernels/knn/direct/DirectFew.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class DirectFew : public FlatKnnCertified {
   protected:
    static CertifiedCase of(Metric metric, int64_t n, int64_t q, int d, int k) {
        return caseOf(Direct::Always, metric, n, q, d, k);
    }

    void expectFew(const CertifiedCase& c, Hard kind, bool isFew = true) {
        const FlatKnnPlan plan = planOf(c);
        ASSERT_TRUE(plan.direct) << c.describe();
        ASSERT_EQ(plan.direct->few, isFew) << c.describe();
        EXPECT_EQ(expectCanonical(c, kind).repeated, 0u);
    }

    /// Vectors whose components are all valueOf(vector).
    void expectFew(
            const CertifiedCase& c,
            const std::function<float(int64_t)>& valueOf) {
        const FlatKnnPlan plan = planOf(c);
        ASSERT_TRUE(plan.direct && plan.direct->few) << c.describe();
        std::vector<float> vectors(c.n * c.d);
        for (int64_t i = 0; i < c.n; ++i) {
            std::fill_n(vectors.begin() + i * c.d, c.d, valueOf(i));
        }
        const std::vector<float> queries(c.q * c.d, 0.5f);
        check(c, vectors, queries, search(c, vectors, queries));
    }
};

TEST_F(DirectFew, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kDirectMetrics) {
            for (int64_t n : {2005, 20000}) {
                for (int k : {10, 100}) {
                    expectFew(of(metric, n, 2, 5, k), kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(DirectFew, BothSidesOfEveryNumberOfVectors) {
    for (int64_t n :
         {1,
          2,
          31,
          32,
          33,
          127,
          128,
          129,
          4064,
          4096,
          4097,
          16383,
          16384,
          16385,
          32767,
          32768}) {
        for (int k : {1, 10, 127, 128}) {
            expectFew(of(Metric::L2, n, 3, 5, k), Hard::Bytes);
            if (HasFailure()) {
                return;
            }
        }
    }
    expectFew(of(Metric::L2, 32769, 3, 5, 100), Hard::Bytes, false);
    expectFew(of(Metric::L2, 5000, 3, 5, 129), Hard::Bytes, false);
}

/// A block a query, one for each multiprocessor.
TEST_F(DirectFew, BothSidesOfEveryNumberOfQueries) {
    const int64_t most = deviceTraits().multiprocessors;
    expectFew(of(Metric::L2, 700, most, 5, 100), Hard::Mixed);
    expectFew(of(Metric::L2, 700, most + 1, 5, 100), Hard::Mixed, false);
}

/// Eight lanes a pair, with as many loads on their way as components need, and
/// more.
TEST_F(DirectFew, EveryDimension) {
    for (Metric metric : kDirectMetrics) {
        for (int d : {64, 65, 127, 128, 129, 135, 136, 137, 256, 771}) {
            expectFew(of(metric, 1000, 2, d, 20), Hard::Mixed);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// By a list with holes, whose places are not its ids; and by bits alone.
TEST_F(DirectFew, Filters) {
    for (Hard kind : {Hard::Bytes, Hard::Duplicates, Hard::Infinite}) {
        for (int allowedOf : {1, 7, 100, 100000}) {
            for (int holes : {-1, 0, 77}) {
                for (int d : {3, 70}) {
                    CertifiedCase c =
                            of(Metric::InnerProduct, 20011, 2, d, 100);
                    c.allowedOf = allowedOf;
                    c.holes = holes;
                    c.idType = d == 3 ? IdType::Int32 : IdType::Int64;
                    expectFew(c, kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// The keys are those of a list, of many more vectors.
TEST_F(DirectFew, ShortLists) {
    for (int64_t listed : {29412 + 900, 32768, 32769}) {
        CertifiedCase c = of(Metric::L2, 500000, 2, 4, 128);
        c.allowedOf = 17; // 29412 of them
        c.holes = int(listed) - 29412;
        FlatKnnProblem p;
        p.numVectors = c.n;
        p.numQueries = c.q;
        p.d = c.d;
        p.k = c.k;
        p.device = traitsOf(c);
        // Not null, and never read.
        p.allowedIds = reinterpret_cast<const int32_t*>(uintptr_t(256));
        p.numAllowed = listed;
        const std::optional<DirectPlan> plan = planDirect(p, c.maxScratch);
        ASSERT_TRUE(plan);
        EXPECT_EQ(plan->few, listed <= kMostFewKeys) << listed;
        EXPECT_EQ(expectCanonical(c, Hard::Bytes).repeated, 0u);
    }
}

/// Eight lanes a pair, where k is too large for registers or queries too many.
TEST_F(DirectFew, PairsOfEightLanesWithGroups) {
    const int64_t most = deviceTraits().multiprocessors;
    for (Hard kind : {Hard::Bytes, Hard::Duplicates, Hard::Infinite}) {
        for (int k : {129, 600, 2048}) {
            for (int64_t q : {1, 3}) {
                expectFew(of(Metric::L2, 5001, q, 70, k), kind, false);
            }
        }
        expectFew(of(Metric::Linf, 33, most + 1, 64, 10), kind, false);
        CertifiedCase c = of(Metric::L2, 20011, 2, 64, 130);
        c.allowedOf = 7;
        c.holes = 50;
        c.maxScratch = size_t(1) << 30;
        EXPECT_EQ(expectCanonical(c, kind).repeated, 0u);
        if (HasFailure()) {
            return;
        }
    }
}

/// Of more blocks than run at once, and up to 2,048 dimensions, each has four
/// queries.
TEST_F(DirectFew, PairsOfEightLanesOfSeveralQueries) {
    const int64_t blocks = 4 * deviceTraits().multiprocessors;
    for (Metric metric : kDirectMetrics) {
        for (int64_t q : {5, 6, 7, 8, 31}) {
            const int64_t n = blocks / q * 32;
            expectFew(of(metric, n, q, 64, 10), Hard::Mixed);
            CertifiedCase c = of(metric, n + 33, q, 131, 10);
            ASSERT_LE(c.n * q, 32768);
            expectFew(c, Hard::Infinite);
            c.dataType = metric == Metric::Cosine ? DataType::Float16
                                                  : DataType::BFloat16;
            expectFew(c, Hard::Bytes);
            c.allowedOf = 3;
            expectFew(c, Hard::Duplicates);
            if (HasFailure()) {
                return;
            }
        }
    }
    for (int d : {2047, 2048, 2049}) {
        expectFew(of(Metric::L2, 1100, 18, d, 10), Hard::Mixed);
    }
}

/// Every thread's least is the same, or is the best of all, or there is none;
/// and more entries than are compared with each other tie with the limit.
TEST_F(DirectFew, ThreadsThatAreAlike) {
    const float nan = std::nanf("");
    for (int64_t n : {4000, 15000, 32768}) {
        for (int k : {1, 10, 127, 128}) {
            const CertifiedCase c = of(Metric::L2, n, 2, 2, k);
            expectFew(c, [](int64_t) { return 1; });
            expectFew(c, [](int64_t i) { return i; });
            expectFew(c, [n](int64_t i) { return n - i; });
            expectFew(c, [](int64_t i) { return i % 33; });
            // All of the best are one thread's.
            expectFew(c, [](int64_t i) {
                return i % 4096 < 4 ? i / 4096 : 100 + i % 1000;
            });
            // Some hundred threads have four each.
            expectFew(c, [](int64_t i) { return i < 520 ? 1 : 2 + i % 7; });
            for (int64_t numbers : {1, 9, 10, 127, 128, 129, 511, 512, 513}) {
                expectFew(c, [=](int64_t i) {
                    return i % 7 == 3 && i / 7 < numbers ? float(i % 4) : nan;
                });
                expectFew(c, [=](int64_t i) {
                    return i < numbers ? float(-i) : nan;
                });
            }
            expectFew(c, [=](int64_t) { return nan; });
            expectFew(c, [](int64_t i) {
                return i % 100 == 3 ? float(i)
                                    : std::numeric_limits<float>::infinity();
            });
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(DirectFew, CountsWhatItComputes) {
    for (auto [d, q] :
         std::vector<std::pair<int, unsigned>>{{6, 2}, {80, 2}, {80, 23}}) {
        CertifiedCase c = of(Metric::L2, 1000, q, d, 12);
        const auto vectors = makeHard(Hard::Bytes, c.n, c.d, 1);
        const auto queries = makeHard(Hard::Bytes, c.q, c.d, 2);
        EXPECT_EQ(search(c, vectors, queries).rescored, 1000 * q);
        c.allowedOf = 10;
        EXPECT_EQ(search(c, vectors, queries).rescored, 100 * q);
        c.holes = 50;
        EXPECT_EQ(search(c, vectors, queries).rescored, 100 * q);
    }
}

TEST_F(DirectFew, SmallOfEveryKind) {
    for (int64_t n : {700, 5000, 20000}) {
        expectFew(of(Metric::L2, n, 2, 3, 12), Hard::Duplicates);
        expectFew(of(Metric::L2, n, 1, 72, 100), Hard::Clusters);
    }
    CertifiedCase c = of(Metric::Cosine, 3000, 2, 72, 5);
    c.allowedOf = 7;
    c.holes = 3;
    expectFew(c, Hard::Infinite);
    c.dataType = DataType::BFloat16;
    expectFew(c, Hard::Bytes);
    expectFew(of(Metric::L2, 5000, 1, 2, 128), [](int64_t) { return 1; });
    expectFew(of(Metric::L2, 500, 2, 70, 130), Hard::Bytes, false);
    expectFew(of(Metric::InnerProduct, 1050, 17, 65, 5), Hard::Infinite);
}

} // namespace
} // namespace faiss_bits::test
