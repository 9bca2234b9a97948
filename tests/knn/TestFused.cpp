/// Certified searches without a matrix of distances: every place is the
/// canonical one, whatever the sample says.

#include "kernels/knn/FlatKnnPlan.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class FusedKnn : public FlatKnnCertified {
   protected:
    static bool isFused(const CertifiedCase& c) {
        return planOf(c).fused.has_value();
    }
};

TEST_F(FusedKnn, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kAllMetrics) {
            // Of 17 to 64 queries only where an image is there.
            for (int64_t q : {1, 16, 65, 130}) {
                for (int d : {3, 40, 50}) {
                    CertifiedCase c;
                    c.metric = metric;
                    c.n = 9001;
                    c.q = q;
                    c.d = d;
                    c.keptImage = d != 40;
                    EXPECT_TRUE(isFused(c)) << c.describe();
                    expectCanonical(c, kind);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(FusedKnn, SixteenBits) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Mixed, Hard::Infinite}) {
        for (Metric metric : kMetrics) {
            for (DataType type : {DataType::Float16, DataType::BFloat16}) {
                for (bool exactQueries : {false, true}) {
                    for (int64_t q : {2, 50}) {
                        CertifiedCase c;
                        c.metric = metric;
                        c.dataType = type;
                        c.exactQueries = exactQueries;
                        c.n = 10000;
                        c.q = q;
                        c.d = 24;
                        expectCanonical(c, kind);
                        if (HasFatalFailure()) {
                            return;
                        }
                    }
                }
            }
        }
    }
}

/// Limits from more of a sample than a thread has eight of: small ranks step by
/// step, others by narrowing.
TEST_F(FusedKnn, RanksOfALargeSample) {
    std::vector<uint32_t> ranks;
    for (int k : {1, 2, 3, 4, 6, 8, 20, 60, 150}) {
        for (Hard kind : kHard) {
            CertifiedCase c;
            c.metric = Metric::L1;
            c.n = 40001;
            c.q = 70;
            c.d = 5;
            c.k = k;
            const FlatKnnPlan plan = planOf(c);
            ASSERT_TRUE(plan.fused && plan.fused->samples > 4096)
                    << c.describe();
            ranks.push_back(plan.fused->rank);
            expectCanonical(c, kind);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
    std::sort(ranks.begin(), ranks.end());
    EXPECT_LE(ranks.front(), 5u);
    EXPECT_TRUE(std::any_of(ranks.begin(), ranks.end(), [](uint32_t rank) {
        return rank > 5 && rank <= 32;
    }));
    EXPECT_GT(ranks.back(), 32u);
}

TEST_F(FusedKnn, Filters) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Infinite}) {
        for (Metric metric :
             {Metric::L2, Metric::InnerProduct, Metric::Cosine, Metric::L1}) {
            for (int allowedOf : {1, 2, 3, 50, 1000, 9000, 20000}) {
                for (int64_t q : {2, 16, 17, 70}) {
                    CertifiedCase c;
                    c.metric = metric;
                    c.allowedOf = allowedOf;
                    c.n = 9001;
                    c.q = q;
                    c.k = 20;
                    expectCanonical(c, kind);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Images of the allowed vectors alone.
TEST_F(FusedKnn, Lists) {
    for (Hard kind : {Hard::Offset, Hard::Infinite, Hard::Duplicates}) {
        for (Metric metric :
             {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
            for (int allowedOf : {2, 5}) {
                for (int64_t q : {1, 16, 17, 70}) {
                    for (int d : {5, 50, 130}) {
                        CertifiedCase c;
                        c.metric = metric;
                        c.allowedOf = allowedOf;
                        c.holes = d % 4;
                        c.n = 42003;
                        c.q = q;
                        c.d = d;
                        c.k = 20;
                        c.keptImage = q % 2;
                        expectCanonical(c, kind);
                        if (HasFatalFailure()) {
                            return;
                        }
                    }
                }
            }
        }
    }
}

/// An offset says nothing about neighbours: images are of what is left of it.
TEST_F(FusedKnn, OffsetsAreProven) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int64_t q : {16, 200}) {
            for (int d : {16, 128}) {
                CertifiedCase c;
                c.metric = metric;
                c.n = 50000;
                c.q = q;
                c.d = d;
                c.keptImage = true;
                EXPECT_LE(expectCanonical(c, Hard::Offset).repeated, 2u)
                        << c.describe();
            }
        }
    }
}

/// Of one to three dimensions neighbours are nearer than products tell, near
/// the origin too: samples are met by differences.
TEST_F(FusedKnn, FewDimensionsAreProven) {
    for (Hard kind : {Hard::Offset, Hard::Infinite}) {
        for (int64_t q : {17, 300}) {
            for (int d : {1, 2, 3}) {
                CertifiedCase c;
                c.n = 200000;
                c.q = q;
                c.d = d;
                c.k = 2;
                c.direct = Direct::FusedFirst; // of one dimension others pay
                ASSERT_TRUE(isFused(c)) << c.describe();
                // Of one query in 50 a component is infinite, or no number.
                EXPECT_LE(expectCanonical(c, kind).repeated, unsigned(q / 5))
                        << c.describe();
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// Many queries and vectors: the limits of a second sample.
TEST_F(FusedKnn, SecondSample) {
    for (Hard kind :
         {Hard::Offset,
          Hard::Bytes,
          Hard::Clusters,
          Hard::Duplicates,
          Hard::Infinite}) {
        for (Metric metric :
             {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
            for (int k : {1, 10, 100, 400}) {
                CertifiedCase c;
                c.metric = metric;
                c.n = 530001;
                c.q = k == 10 ? 300 : 20;
                c.d = 18;
                c.k = k;
                c.keptImage = k == 10;
                c.allowedOf = k == 100 ? 3 : 0;
                c.holes = metric == Metric::L2 ? -1 : 1;
                const Result result = expectCanonical(c, kind);
                if (kind == Hard::Bytes) {
                    EXPECT_EQ(result.repeated, 0u) << c.describe();
                }
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
    for (int k : {1000, 2000}) {
        CertifiedCase c;
        c.n = (1 << 20) + 5;
        c.q = 20;
        c.d = 9;
        c.k = k;
        EXPECT_EQ(expectCanonical(c, Hard::Bytes).repeated, 0u);
    }
    FlatKnnProblem p;
    p.numVectors = 530001;
    p.numQueries = 300;
    p.d = 18;
    p.k = 10;
    p.device = deviceTraits();
    const FlatKnnPlan plan = planFlatKnn(p, kRoomyScratch);
    ASSERT_TRUE(plan.fused);
    EXPECT_EQ(plan.fused->secondRank, sampleRank(10, 1. / 16));
    EXPECT_EQ(plan.fused->samples, 0u);
    EXPECT_GE(plan.fused->secondStrips.perRow, 256u);
    p.k = 2000;
    const FlatKnnPlan large = planFlatKnn(p, kRoomyScratch);
    ASSERT_TRUE(large.fused);
    EXPECT_GE(large.fused->secondStrips.perRow, 4 * large.fused->secondRank);
    // With a filter too, by every metric.
    const std::vector<uint32_t> bits((p.numVectors + 31) / 32, 0x7fffffffu);
    p.k = 10;
    p.allowedBits = bits.data();
    const FlatKnnPlan filtered = planFlatKnn(p, kRoomyScratch);
    ASSERT_TRUE(filtered.fused);
    EXPECT_EQ(filtered.fused->samples, 0u);
    EXPECT_EQ(
            filtered.fused->secondStrips.perRow,
            plan.fused->secondStrips.perRow);
}

TEST_F(FusedKnn, EveryK) {
    for (Hard kind : {Hard::Bytes, Hard::Offset, Hard::Duplicates}) {
        for (int k : {1, 2, 64, 127, 128, 129, 513, 1024, 1025, 2047, 2048}) {
            for (int64_t q : {2, 33}) {
                CertifiedCase c;
                c.n = 40000;
                c.q = q;
                c.d = 17;
                c.k = k;
                c.idType = k % 2 ? IdType::Int32 : IdType::Int64;
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FusedKnn, LittleScratch) {
    for (Hard kind : {Hard::Bytes, Hard::Duplicates}) {
        for (size_t scratch : {kLeastScratch, size_t(6) << 20}) {
            CertifiedCase c;
            c.n = 70001;
            c.q = 300;
            c.d = 12;
            c.k = 40;
            c.maxScratch = scratch;
            expectCanonical(c, kind);
        }
    }
}

TEST_F(FusedKnn, Takes) {
    CertifiedCase c;
    c.n = 100000;
    c.d = 32;
    for (int64_t q : {1, 16}) {
        c.q = q;
        EXPECT_TRUE(isFused(c)) << c.describe();
    }
    c.n = 1000;
    EXPECT_FALSE(isFused(c)) << c.describe();
}

TEST_F(FusedKnn, SmallHardData) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Infinite}) {
        for (int k : {3, 300}) {
            for (int64_t q : {2, 20}) {
                CertifiedCase c;
                c.n = 8200;
                c.q = q;
                c.d = 5;
                c.k = k;
                c.metric = q == 2 ? Metric::InnerProduct : Metric::L2;
                c.idType = IdType::Int32;
                expectCanonical(c, kind);
            }
        }
    }
}

TEST_F(FusedKnn, SmallSecondSample) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        CertifiedCase c;
        c.metric = metric;
        c.n = 524288;
        c.q = 17;
        c.d = 5;
        expectCanonical(c, Hard::Bytes);
        c.allowedOf = 3;
        expectCanonical(c, Hard::Bytes);
        c.allowedOf = 6;
        c.holes = 1;
        expectCanonical(c, Hard::Bytes);
    }
}

TEST_F(FusedKnn, SmallListsAndKeptImages) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
        for (int64_t q : {1, 5, 20}) {
            CertifiedCase c;
            c.metric = metric;
            c.n = 34000;
            c.q = q;
            c.d = 49;
            c.keptImage = true;
            expectCanonical(c, Hard::Offset);
            c.allowedOf = 4;
            c.holes = 2;
            expectCanonical(c, Hard::Offset);
        }
    }
}

} // namespace
} // namespace faiss_bits::test
