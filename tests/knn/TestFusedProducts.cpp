/// Certified searches whose lists have the products of the scan: every place is
/// the canonical one, and few of what passed are scored.

#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/fused/FusedLists.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class FusedProducts : public FlatKnnCertified {
   protected:
    static CertifiedCase of(Metric metric, int k, int d) {
        CertifiedCase c;
        c.metric = metric;
        c.n = 524288 + 77;
        c.q = 18;
        c.d = d;
        c.k = k;
        c.keptImage = k % 2;
        return c;
    }

    static std::vector<float> uniform(int64_t rows, int d, uint32_t seed) {
        std::mt19937 random(seed);
        std::vector<float> out(size_t(rows) * d);
        for (float& one : out) {
            one = float(random() >> 8) * 0x1p-24f;
        }
        return out;
    }

    /// Of some queries: the oracle reads half a gigabyte for each.
    Result expectSome(const CertifiedCase& c, Hard kind) {
        SCOPED_TRACE(c.describe() + " data " + std::to_string(int(kind)));
        const auto vectors = makeHard(kind, c.n, c.d, 1);
        const auto queries = makeHard(kind, c.q, c.d, 2);
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result, 4);
        return result;
    }
};

/// Which lists have products: the other tests are of such.
TEST_F(FusedProducts, ByThePlan) {
    FlatKnnProblem p;
    p.numVectors = 530001;
    p.numQueries = 20;
    p.d = 257;
    p.k = 10;
    p.device = deviceTraits();
    p.searchImage = &p; // never read
    const FlatKnnPlan plan = planFlatKnn(p, kRoomyScratch);
    ASSERT_TRUE(plan.fused);
    EXPECT_EQ(keepsProducts(*plan.fused, p), p.device.computeCapability == 90);
    p.k = 1;
    const FlatKnnPlan few = planFlatKnn(p, kRoomyScratch);
    ASSERT_TRUE(few.fused);
    EXPECT_EQ(keepsProducts(*few.fused, p), p.device.computeCapability == 90);
    // Of shorter vectors those of many queries are.
    p.d = 120;
    const FlatKnnPlan none = planFlatKnn(p, kRoomyScratch);
    ASSERT_TRUE(none.fused);
    EXPECT_FALSE(keepsProducts(*none.fused, p));
    p.numQueries = 600;
    const FlatKnnPlan many = planFlatKnn(p, kRoomyScratch);
    ASSERT_TRUE(many.fused);
    EXPECT_EQ(keepsProducts(*many.fused, p), p.device.computeCapability == 90);
}

TEST_F(FusedProducts, Integers) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        const CertifiedCase c = of(metric, 101, 257);
        const Result result = expectSome(c, Hard::Bytes);
        EXPECT_EQ(result.repeated, 0u) << c.describe();
        // Images hold the integers exactly: a product is off by its sums'
        // rounding alone, some 400 where keys of neighbouring ranks are 500
        // apart. Some 4 k of a query pass.
        const double wanted = double(c.k) * double(c.q);
        EXPECT_GE(double(result.rescored), wanted) << c.describe();
        EXPECT_LT(double(result.rescored), 1.5 * wanted) << c.describe();
        if (HasFatalFailure()) {
            return;
        }
    }
}

/// The second sample has the nearest of one query in 16: with its key alone for
/// a limit some 3% of these would be searched again, 19 for k = 1.
TEST_F(FusedProducts, FewResults) {
    for (int d : {120, 257}) {
        const int64_t n = of(Metric::L2, 1, d).n;
        const int64_t q = 600;
        const auto vectors = uniform(n, d, 1);
        const auto queries = uniform(q, d, 2);
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (int k : {1, 2, 9}) {
                CertifiedCase c = of(metric, k, d);
                c.q = q;
                const Result result = search(c, vectors, queries);
                EXPECT_EQ(result.repeated, 0u) << c.describe();
                // Some of those that pass, 17 and more.
                if (metric == Metric::L2) {
                    EXPECT_LT(double(result.rescored), 10.0 * k * double(q))
                            << c.describe();
                }
                check(c, vectors, queries, result, 3);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FusedProducts, FewResultsOfHardData) {
    for (Hard kind : {Hard::Clusters, Hard::Offset}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            expectSome(of(metric, kind == Hard::Offset ? 1 : 3, 258), kind);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(FusedProducts, ShortVectorsOfHardData) {
    int i = 0;
    for (Hard kind :
         {Hard::Offset, Hard::Clusters, Hard::Duplicates, Hard::Infinite}) {
        CertifiedCase c = of(
                i % 2 ? Metric::InnerProduct : Metric::L2, 10 + i, 64 * i + 34);
        c.q = 65536 / c.d + 1;
        expectSome(c, kind);
        if (HasFatalFailure()) {
            return;
        }
        ++i;
    }
}

TEST_F(FusedProducts, HardData) {
    int i = 0;
    for (Hard kind :
         {Hard::Offset, Hard::Clusters, Hard::Duplicates, Hard::Infinite}) {
        CertifiedCase c =
                of(i % 2 ? Metric::InnerProduct : Metric::L2, 10 + i, 257 + i);
        c.allowedOf = i == 2 ? 3 : 0;
        expectSome(c, kind);
        if (HasFatalFailure()) {
            return;
        }
        ++i;
    }
}

} // namespace
} // namespace faiss_bits::test
