/// Searches part by part, of so few vectors that a reference sees them all.

#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class PartsKnn : public FlatKnnCertified {
   protected:
    static CertifiedCase of(
            Metric metric,
            int64_t n,
            int64_t q,
            int d,
            int k,
            int64_t partVectors) {
        CertifiedCase c = caseOf(Direct::WhereItPays, metric, n, q, d, k);
        c.partVectors = partVectors;
        return c;
    }

    void expectParts(const CertifiedCase& c, int parts, Hard kind) {
        const FlatKnnPlan plan = planOf(c);
        ASSERT_TRUE(plan.parts) << c.describe();
        ASSERT_EQ(plan.parts->parts, parts) << c.describe();
        expectCanonical(c, kind);
    }
};

TEST_F(PartsKnn, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kMetrics) {
            for (int64_t q : {1, 20}) {
                expectParts(of(metric, 3001, q, 9, 40, 1024), 3, kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// The last part of one vector, and of all but one.
TEST_F(PartsKnn, BothSidesOfEveryPart) {
    for (auto [n, parts] : std::vector<std::pair<int64_t, int>>{
                 {33, 2}, {64, 2}, {65, 3}, {2047, 64}, {2048, 64}}) {
        for (int k : {1, 31, 33, 70, 3000}) {
            expectParts(
                    of(Metric::L2, n, 3, 5, k, 32), parts, Hard::Duplicates);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// By every kind of search within a part.
TEST_F(PartsKnn, EveryKindOfSearch) {
    for (Hard kind : {Hard::Bytes, Hard::Duplicates, Hard::Offset}) {
        for (int64_t q : {1, 16, 17, 300}) {
            for (int k : {1, 10, 2048, 2100}) {
                expectParts(of(Metric::L2, 70000, q, 24, k, 24000), 3, kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(PartsKnn, SixteenBits) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (bool exact : {false, true}) {
            CertifiedCase c = of(Metric::InnerProduct, 9000, 20, 33, 50, 3200);
            c.dataType = type;
            c.exactQueries = exact;
            expectParts(c, 3, Hard::Mixed);
        }
    }
}

/// A list is of all vectors: the bits serve.
TEST_F(PartsKnn, Filters) {
    for (int allowedOf : {1, 2, 7, 1000, 100000}) {
        for (int holes : {-1, 0, 5}) {
            for (int64_t q : {1, 20}) {
                CertifiedCase c = of(Metric::L2, 20011, q, 8, 30, 6688);
                c.allowedOf = allowedOf;
                c.holes = holes;
                expectParts(c, 3, Hard::Bytes);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Fewer queries at a time than there are.
TEST_F(PartsKnn, LittleScratch) {
    CertifiedCase c = of(Metric::L2, 5000, 301, 6, 600, 1600);
    c.maxScratch = size_t(3) << 20;
    const FlatKnnPlan plan = planOf(c);
    ASSERT_TRUE(plan.parts);
    EXPECT_LT(plan.parts->tileQueries, 301);
    EXPECT_NE(301 % plan.parts->tileQueries, 0) << "the last tile is another";
    expectParts(c, 4, Hard::Clusters);
}

/// A limit for all is one for each: results within it are there.
TEST_F(PartsKnn, GivenLimits) {
    CertifiedCase c = of(Metric::L2, 30000, 20, 16, 10, 10016);
    const auto vectors = makeHard(Hard::Bytes, c.n, c.d, 1);
    const auto queries = makeHard(Hard::Bytes, c.q, c.d, 2);
    const Result all = search(c, vectors, queries);
    check(c, vectors, queries, all);
    for (int64_t i = 0; i < c.q; ++i) {
        c.limits.push_back(all.distances[(i + 1) * c.k - 1]);
    }
    const FlatKnnPlan plan = planOf(c);
    ASSERT_TRUE(plan.parts);
    ASSERT_EQ(plan.parts->parts, 3);
    for (int part = 0; part < 3; ++part) {
        const FlatKnnProblem some =
                partOf(shapeOf(c), *plan.parts, part, 0, c.q);
        const FlatKnnPlan one = planOf(c, some);
        ASSERT_TRUE(one.fused) << part;
        EXPECT_TRUE(one.fused->givenLimits) << part;
    }
    check(c, vectors, queries, search(c, vectors, queries));
}

TEST_F(PartsKnn, SmallOfEveryKind) {
    for (int64_t q : {1, 20}) {
        expectParts(of(Metric::L2, 300, q, 5, 12, 128), 3, Hard::Duplicates);
        CertifiedCase c = of(Metric::L1, 300, q, 5, 12, 128);
        c.allowedOf = 3;
        expectParts(c, 3, Hard::Infinite);
    }
}

} // namespace
} // namespace faiss_bits::test
