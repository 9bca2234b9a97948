/// Certified searches with limits from strips: every place is the canonical
/// one, and where distances can be told apart the limits lead to it at once.

#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

constexpr Metric kProducts[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

class FusedStrips : public FlatKnnCertified {
   protected:
    static CertifiedCase caseOf(
            Metric metric,
            int64_t n,
            int64_t q,
            int d,
            int k) {
        CertifiedCase c =
                FlatKnnCertified::caseOf(Direct::Strips, metric, n, q, d, k);
        c.keptImage = q % 2;
        c.imageInOrder = d % 2;
        return c;
    }

    static bool isByStrips(const CertifiedCase& c) {
        const FlatKnnPlan plan = planOf(c);
        return plan.fused && plan.fused->strips.perRow >= 2 * uint32_t(c.k);
    }
};

TEST_F(FusedStrips, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kProducts) {
            for (int64_t q : {17, 130}) {
                for (int d : {17, 50, 130}) {
                    const CertifiedCase c = caseOf(metric, 2003, q, d, 10);
                    ASSERT_TRUE(isByStrips(c)) << c.describe();
                    expectCanonical(c, kind);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Both sides of units, chunks and numbers of strips.
TEST_F(FusedStrips, NumbersOfVectors) {
    for (int d : {20, 40, 128, 300}) {
        for (int64_t n :
             {256,
              257,
              383,
              384,
              385,
              511,
              513,
              1023,
              1024,
              1025,
              4096,
              4097}) {
            for (int k : {2, 7, 16, 40}) {
                // With d = 300 there are 16 strips of each 256 vectors.
                if (n < 32 * k) {
                    continue;
                }
                const CertifiedCase c = caseOf(
                        k % 2 ? Metric::L2 : Metric::InnerProduct, n, 33, d, k);
                ASSERT_TRUE(isByStrips(c)) << c.describe();
                expectCanonical(c, Hard::Offset);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FusedStrips, NumbersOfResults) {
    for (Metric metric : kProducts) {
        for (int k : {2, 31, 32, 33, 64, 100, 128, 129, 250, 256, 300, 512}) {
            const CertifiedCase c = caseOf(metric, 20011, 35, 32, k);
            ASSERT_TRUE(isByStrips(c)) << c.describe();
            expectCanonical(c, Hard::Clusters);
            if (HasFatalFailure()) {
                return;
            }
        }
        CertifiedCase c = caseOf(metric, 20011, 35, 32, 513);
        EXPECT_FALSE(planOf(c).fused) << "more strips than there may be";
    }
}

/// Of several scans, the last of which has fewer queries.
TEST_F(FusedStrips, ManyQueries) {
    for (Metric metric : kProducts) {
        CertifiedCase c = caseOf(metric, 1500, 66001, 24, 5);
        const FlatKnnPlan plan = planOf(c);
        ASSERT_TRUE(plan.fused);
        EXPECT_LT(plan.fused->tileQueries, c.q);
        expectCanonical(c, Hard::Offset);
        c.q = 3001;
        c.maxScratch = size_t(48) << 20;
        ASSERT_TRUE(isByStrips(c)) << c.describe();
        expectCanonical(c, Hard::Clusters);
    }
}

/// So many in one scan that eight lanes make a limit, and that blocks ask for a
/// share of the flags each: of data where none is set, and where most are.
TEST_F(FusedStrips, ManyQueriesOfOneScan) {
    for (Metric metric : kProducts) {
        for (int k : {32, 50}) {
            const CertifiedCase c = caseOf(metric, 4003, 1 << 16, 24, k);
            ASSERT_TRUE(isByStrips(c)) << c.describe();
            ASSERT_EQ(planOf(c).fused->tileQueries, c.q) << c.describe();
            for (Hard kind : {Hard::Offset, Hard::Duplicates}) {
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// So many that a warp finishes each list (FinishPassed.h); in hard data some
/// lists are longer, and some overflow.
TEST_F(FusedStrips, ManyListsOfHardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kProducts) {
            for (int k : {10, 50, 100}) {
                const CertifiedCase c = caseOf(metric, 4003, 1030, 24, k);
                ASSERT_TRUE(isByStrips(c)) << c.describe();
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FusedStrips, SmallManyLists) {
    for (Metric metric : kProducts) {
        const CertifiedCase c = caseOf(metric, 601, 1025, 17, 10);
        const FlatKnnPlan plan = planOf(c);
        ASSERT_TRUE(plan.fused && plan.fused->tileQueries == c.q);
        expectCanonical(c, Hard::Clusters);
    }
}

TEST_F(FusedStrips, SixteenBits) {
    for (Metric metric : kProducts) {
        for (DataType type : {DataType::Float16, DataType::BFloat16}) {
            CertifiedCase c = caseOf(metric, 5000, 70, 40, 20);
            c.dataType = type;
            c.exactQueries = metric == Metric::L2;
            expectCanonical(c, Hard::Mixed);
        }
    }
}

/// What is found is what was asked for: no query is searched again, and few
/// vectors beyond k have their canonical distances computed.
TEST_F(FusedStrips, LimitsAreClose) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : {16, 128}) {
            for (int k : {8, 32, 128}) {
                // Lists finished by blocks, and by warps.
                const int64_t q = k == 8 ? 301 : 1301;
                const CertifiedCase c = caseOf(metric, 8192, q, d, k);
                ASSERT_TRUE(isByStrips(c)) << c.describe();
                std::mt19937 random(5);
                std::uniform_real_distribution<float> uniform;
                std::vector<float> vectors(c.n * d);
                std::vector<float> queries(c.q * d);
                for (std::vector<float>* values : {&vectors, &queries}) {
                    for (float& value : *values) {
                        value = uniform(random);
                    }
                }
                const Result result = search(c, vectors, queries);
                check(c, vectors, queries, result);
                EXPECT_EQ(result.repeated, 0u) << c.describe();
                EXPECT_LT(double(result.rescored), 1.6 * k * double(c.q))
                        << c.describe();
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// Many equal distances: lists overflow, and queries are searched again.
TEST_F(FusedStrips, AllEqual) {
    for (Metric metric : kProducts) {
        const CertifiedCase c = caseOf(metric, 4001, 21, 20, 10);
        const std::vector<float> vectors(c.n * c.d, 0.75f);
        const std::vector<float> queries(c.q * c.d, 0.5f);
        check(c, vectors, queries, search(c, vectors, queries));
    }
}

} // namespace
} // namespace faiss_bits::test
