/// How filtered searches are planned, and what is refused, without a device.

#include <algorithm>

#include <gtest/gtest.h>

#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/filter/FilterBits.h"
#include "kernels/knn/filter/FilterPlan.h"
#include "tests/common/ExpectError.h"

namespace faiss_bits::test {
namespace {

// Never read: plans look whether there is a filter.
const uint32_t kBits[1] = {};
const int32_t kIds[1] = {};

/// Of a plain search: certified ones have no matrix where a filter leaves much.
FlatKnnProblem problemOf(idx_t n, idx_t q, idx_t listed) {
    FlatKnnProblem p;
    p.mode = SearchMode::Plain;
    p.numVectors = n;
    p.numQueries = q;
    p.d = 128;
    p.k = 10;
    p.allowedBits = kBits;
    p.allowedIds = kIds;
    p.numAllowed = listed;
    p.device.singleToDouble = 32;
    return p;
}

constexpr idx_t kMillion = idx_t(1) << 20;
constexpr size_t kMiB = size_t(1) << 20;
const size_t kBudgets[] = {0, kMiB, 32 * kMiB, 1536 * kMiB, size_t(1) << 40};

bool byList(const FlatKnnProblem& p) {
    return planFlatKnn(p, size_t(1) << 40).byList;
}

TEST(FilterPlan, ListsServeWhereTheySaveTime) {
    for (idx_t q : {1, 16}) {
        EXPECT_TRUE(byList(problemOf(kMillion, q, 0)));
        EXPECT_TRUE(byList(problemOf(kMillion, q, kMillion / 100)));
        EXPECT_TRUE(byList(problemOf(kMillion, q, kMillion / 10)));
        EXPECT_FALSE(byList(problemOf(kMillion, q, kMillion / 2)));
        EXPECT_FALSE(byList(problemOf(kMillion, q, kMillion)));
    }
    for (idx_t q : {17, 64, 1024, 10240}) {
        EXPECT_TRUE(byList(problemOf(kMillion, q, 0)));
        EXPECT_TRUE(byList(problemOf(kMillion, q, kMillion / 100)));
        EXPECT_TRUE(byList(problemOf(kMillion, q, kMillion / 10)));
        EXPECT_FALSE(byList(problemOf(kMillion, q, kMillion)));
    }
    EXPECT_TRUE(byList(problemOf(kMillion, 1024, kMillion / 2)));
    EXPECT_FALSE(byList(problemOf(kMillion, 1024, kMillion / 100 * 99)));
}

TEST(FilterPlan, ScansServeWhereMuchIsAllowed) {
    for (idx_t q : {1, 2, 16, 17, 1024}) {
        for (idx_t listed :
             {idx_t(0), kMillion / 100, kMillion / 2, kMillion}) {
            FlatKnnProblem p = problemOf(kMillion, q, listed);
            p.metric = Metric::L1;
            const bool saves = listed < kMillion / 8 && byList(p);
            p.mode = SearchMode::Certified;
            const FlatKnnPlan plan = planFlatKnn(p, size_t(1) << 40);
            EXPECT_EQ(plan.fused.has_value(), q > 1 && !saves)
                    << q << " " << listed;
        }
    }
}

TEST(FilterPlan, FewOfAListNeedNoCandidates) {
    for (idx_t q : {1, 16}) {
        FlatKnnProblem p = problemOf(kMillion, q, kMillion / 100);
        EXPECT_FALSE(planFlatKnn(p, size_t(1) << 40).direct);
        p.device.singleToDouble = 2;
        EXPECT_FALSE(planFlatKnn(p, size_t(1) << 40).direct);
        p.mode = SearchMode::Certified;
        EXPECT_TRUE(planFlatKnn(p, size_t(1) << 40).direct);
    }
}

TEST(FilterPlan, BitsServeWhereListsCannot) {
    for (idx_t q : {1, 1024}) {
        FlatKnnProblem p = problemOf(kMillion, q, 10);
        p.idType = IdType::Int32;
        EXPECT_TRUE(byList(p));
        p.vectorsRowMajor = false;
        EXPECT_FALSE(byList(p));
        p = problemOf(kMillion, q, 10);
        p.allowedIds = nullptr;
        EXPECT_FALSE(byList(p));
    }
    // Products as wide as gemm/Product.cpp has tried.
    EXPECT_FALSE(byList(problemOf(16383, 1024, 1)));
    EXPECT_TRUE(byList(problemOf(16384, 1024, 1)));
    EXPECT_EQ(gatheredWidth(0), 8192);
    EXPECT_EQ(gatheredWidth(8192), 8192);
    EXPECT_EQ(gatheredWidth(8193), 8200);
}

/// As FlatKnnPlan.TheSizeLeadsToThePlanItCameFrom, for filters.
TEST(FilterPlan, TheSizeLeadsToThePlanItCameFrom) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (idx_t n : {idx_t(1), idx_t(20011), kMillion}) {
            for (idx_t q : {1, 17, 5000}) {
                for (idx_t listed : {idx_t(0), n / 100, n / 2, n}) {
                    for (int k : {1, 100, 5000}) {
                        FlatKnnProblem p = problemOf(n, q, listed);
                        p.metric = metric;
                        p.k = k;
                        const size_t least = planFlatKnn(p, 0).bytes;
                        for (size_t budget : kBudgets) {
                            const FlatKnnPlan plan = planFlatKnn(p, budget);
                            ASSERT_LE(plan.bytes, std::max(budget, least));
                            const FlatKnnPlan again =
                                    planFlatKnn(p, plan.bytes);
                            ASSERT_LE(again.bytes, plan.bytes);
                            if (plan.byList) {
                                ASSERT_EQ(again.toString(), plan.toString());
                            }
                            ASSERT_EQ(plan.columns, plan.byList ? listed : n);
                            if (plan.byList && plan.method->addsNorms) {
                                ASSERT_GE(
                                        plan.distanceStride,
                                        gatheredWidth(plan.tileVectors));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Selections of every tile are those that were planned.
TEST(FilterPlan, EveryTileHasItsSelection) {
    for (idx_t q : {3, 300}) {
        for (idx_t listed : {idx_t(0), idx_t(5), idx_t(24000), idx_t(100003)}) {
            for (size_t budget : kBudgets) {
                const FlatKnnProblem p = problemOf(100003, q, listed);
                const FlatKnnPlan plan = planFlatKnn(p, budget);
                for (idx_t t = 0; t < plan.numVectorTiles; ++t) {
                    const idx_t width = plan.tileBegin(t + 1, plan.columns) -
                            plan.tileBegin(t, plan.columns);
                    const SelectProblem select =
                            tileSelection(p, plan, plan.tileQueries, width);
                    EXPECT_NO_THROW(
                            plan.selectionOf(select.rows, select.cols, false));
                    EXPECT_EQ(select.sharedIds, plan.byList && listed > 0);
                }
            }
        }
    }
}

/// Little scratch: vectors are copied for few queries at a time.
TEST(FilterPlan, ListsThatWouldBeCopiedTooOften) {
    const FlatKnnProblem p = problemOf(kMillion, 1024, kMillion / 2);
    EXPECT_TRUE(planFlatKnn(p, 1536 * kMiB).byList);
    EXPECT_FALSE(planFlatKnn(p, 32 * kMiB).byList);
}

TEST(FilterPlan, FewListedVectorsAreSearchedInFewPieces) {
    const FlatKnnPlan plan =
            planFlatKnn(problemOf(kMillion, 10240, 5), 1536 * kMiB);
    EXPECT_TRUE(plan.byList);
    EXPECT_EQ(plan.tileQueries, 10240);
}

TEST(FilterPlan, BadArguments) {
    FlatKnnProblem p = problemOf(100, 1, -1);
    EXPECT_TRUE(throwsNaming([&] { planFlatKnn(p, 0); }, "numAllowed", "-1"));
    p = problemOf(100, 1, 10);
    p.allowedBits = nullptr;
    EXPECT_TRUE(throwsNaming([&] { planFlatKnn(p, 0); }, "allowedBits"));
}

TEST(FilterPlan, Words) {
    EXPECT_EQ(filterWords(0), 0);
    EXPECT_EQ(filterWords(1), 1);
    EXPECT_EQ(filterWords(32), 1);
    EXPECT_EQ(filterWords(33), 2);
}

/// Strips by inner product need a copy of the second sample: where it leaves
/// room for few queries a scan, limits come from the first one.
TEST(FilterPlan, StripsOfProductsWhereTheyHaveRoom) {
    constexpr idx_t kVectors = kMillion / 2 + 77;
    constexpr idx_t kQueries = 1024;
    constexpr int d = 768;
    const float image = 0;
    FlatKnnProblem p;
    p.metric = Metric::InnerProduct;
    p.numVectors = kVectors;
    p.numQueries = kQueries;
    p.d = d;
    p.k = 10;
    p.device.singleToDouble = 32;
    p.imageHasBytes = true;
    p.searchImage = &image;
    p.allowedBits = kBits;
    const size_t whole = planFlatKnn(p, size_t(1) << 40).bytes;
    const size_t copy = size_t(kVectors / 16) * d * 2;
    ASSERT_GT(whole, copy);
    constexpr size_t kStep = kMiB / 2;
    idx_t stripQueries = kQueries;
    bool bySamples = false;
    for (size_t bytes = whole; bytes > copy - 4 * kStep; bytes -= kStep) {
        const FlatKnnPlan plan = planFlatKnn(p, bytes);
        SCOPED_TRACE(std::to_string(bytes) + ": " + plan.toString());
        ASSERT_TRUE(plan.fused);
        EXPECT_EQ(planFlatKnn(p, plan.bytes).toString(), plan.toString());
        EXPECT_GE(plan.fused->tileQueries, kQueries / 16);
        if (plan.fused->secondStrips.perRow > 0) {
            EXPECT_FALSE(bySamples);
            stripQueries = plan.fused->tileQueries;
        } else {
            bySamples = true;
        }
    }
    EXPECT_TRUE(bySamples);
    EXPECT_LT(stripQueries, kQueries);
}

} // namespace
} // namespace faiss_bits::test
