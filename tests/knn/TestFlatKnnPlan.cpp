/// How searches are cut into tiles, without a device: no CUDA call is made.

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/knn/FlatKnnPlan.h"

namespace faiss_bits::test {
namespace {

struct PlanCase {
    idx_t n = 0;
    idx_t q = 0;
    int k = 0;
    Metric metric = Metric::L2;
    IdType idType = IdType::Int64;
    /// Small ones need no candidates (DirectKnn.h), and have no tiles.
    bool fastDouble = false;

    FlatKnnProblem problem() const {
        FlatKnnProblem p;
        p.metric = metric;
        p.numVectors = n;
        p.numQueries = q;
        p.d = 16;
        p.k = k;
        p.idType = idType;
        p.device.singleToDouble = fastDouble ? 2 : 32;
        return p;
    }

    std::string describe() const {
        std::ostringstream text;
        text << "n=" << n << " q=" << q << " k=" << k
             << (metric == Metric::L2 ? " L2" : " IP")
             << (idType == IdType::Int32 ? " ids32" : "")
             << (fastDouble ? " fast double" : "");
        return text.str();
    }
};

/// Every shape that could be cut in its own way.
std::vector<PlanCase> cases() {
    std::vector<PlanCase> list;
    for (idx_t n :
         {idx_t(0),
          idx_t(1),
          idx_t(5000),
          idx_t(16385),
          idx_t(100003),
          (idx_t(1) << 27) + 1,
          (idx_t(1) << 31) - 1}) {
        for (idx_t q : {1, 10, 16, 17, 1000, 1000000}) {
            for (idx_t k :
                 {idx_t(1),
                  idx_t(2048),
                  idx_t(2049),
                  idx_t(100000),
                  idx_t(1) << 24,
                  std::max<idx_t>(n, 1),
                  (idx_t(1) << 31) - 1}) {
                PlanCase c;
                c.n = n;
                c.q = q;
                c.k = int(k);
                list.push_back(c);
                c.fastDouble = true;
                list.push_back(c);
                c.fastDouble = false;
                c.metric = Metric::InnerProduct;
                c.idType = IdType::Int32;
                list.push_back(c);
            }
        }
    }
    return list;
}

constexpr size_t kMiB = size_t(1) << 20;
const size_t kBudgets[] = {0, kMiB, 32 * kMiB, 1536 * kMiB, size_t(1) << 40};

TEST(FlatKnnPlan, TilesCoverTheVectorsAndHoldKEach) {
    for (const PlanCase& c : cases()) {
        SCOPED_TRACE(c.describe());
        for (size_t budget : kBudgets) {
            const FlatKnnPlan plan = planFlatKnn(c.problem(), budget);
            if (!plan.method) {
                continue; // no tiles
            }
            const idx_t tiles = plan.numVectorTiles;
            ASSERT_GE(tiles, 1);
            ASSERT_EQ(plan.tileBegin(0, c.n), 0);
            ASSERT_EQ(plan.tileBegin(tiles, c.n), c.n);
            ASSERT_GE(plan.distanceStride, plan.tileVectors);
            ASSERT_EQ(plan.distanceStride % 8, 0);
            for (idx_t t = 0; t < tiles; ++t) {
                const idx_t begin = plan.tileBegin(t, c.n);
                const idx_t width = plan.tileBegin(t + 1, c.n) - begin;
                ASSERT_EQ(begin % 8, 0) << "tile " << t;
                ASSERT_LE(width, plan.tileVectors) << "tile " << t;
                if (tiles > 1) {
                    // gemm/Product.cpp: kLeastVectors.
                    ASSERT_GE(width, 8192) << "tile " << t << " of " << tiles;
                    ASSERT_GE(width, c.k) << "tile " << t << " of " << tiles;
                }
            }
            ASSERT_GE(plan.tileQueries, 1);
            ASSERT_LE(plan.tileQueries, c.q);
            if (tiles > 1) {
                ASSERT_GE(plan.slots, 2);
                // Places must fit the ids' type.
                ASSERT_LE(idx_t(plan.slots) * c.k, INT32_MAX);
            }
        }
    }
}

/// The run is given what the size query has said, and must find the same plan.
TEST(FlatKnnPlan, TheSizeLeadsToThePlanItCameFrom) {
    for (const PlanCase& c : cases()) {
        SCOPED_TRACE(c.describe());
        const size_t least = planFlatKnn(c.problem(), 0).bytes;
        for (size_t budget : kBudgets) {
            const FlatKnnPlan plan = planFlatKnn(c.problem(), budget);
            ASSERT_LE(plan.bytes, std::max(budget, least));
            const FlatKnnPlan again = planFlatKnn(c.problem(), plan.bytes);
            ASSERT_EQ(again.bytes, plan.bytes);
            ASSERT_EQ(again.toString(), plan.toString());
            ASSERT_EQ(again.tileQueries, plan.tileQueries);
            ASSERT_EQ(again.tileVectors, plan.tileVectors);
            ASSERT_EQ(again.slots, plan.slots);
        }
    }
}

/// Where nearly all vectors are candidates all are, so that nothing is to be
/// proved; not where the selection of all is a slower one.
TEST(FlatKnnPlan, NearlyAllCandidatesAreAll) {
    const auto placesOf = [](idx_t n, int k, int d) {
        FlatKnnProblem p;
        p.metric = Metric::Canberra;
        p.device.singleToDouble = 32; // else there are no candidates
        p.numVectors = n;
        p.numQueries = 150;
        p.d = d;
        p.k = k;
        return planFlatKnn(p, size_t(1) << 40).places;
    };
    EXPECT_EQ(placesOf(8083, 6797, 169), 8083);
    EXPECT_EQ(placesOf(8000, 7000, 4), 8000);
    EXPECT_EQ(placesOf(1000, 870, 4), 1000);
    EXPECT_EQ(placesOf(2200, 1950, 64), kMaxSelectK);
    for (int k : {10, 2000, 6000, 6700}) {
        const int places = placesOf(8000, k, 4);
        EXPECT_GT(places, k);
        EXPECT_LT(places, 7000);
    }
}

/// With room, on a GPU of fast float64; neither way serves one of slow.
FlatKnnPlan planOfFastDouble(
        idx_t n,
        idx_t q,
        int d,
        int k,
        Metric metric = Metric::L2) {
    PlanCase c;
    c.metric = metric;
    c.n = n;
    c.q = q;
    c.k = k;
    FlatKnnProblem p = c.problem();
    p.d = d;
    const FlatKnnPlan slow = planFlatKnn(p, size_t(1) << 40);
    EXPECT_FALSE(slow.direct || slow.allPairs) << c.describe();
    c.fastDouble = true;
    p.device = c.problem().device;
    return planFlatKnn(p, size_t(1) << 40);
}

/// Small searches, and one query in few dimensions.
TEST(FlatKnnPlan, FewPairsNeedNoCandidates) {
    const auto isDirect = [](idx_t n,
                             idx_t q,
                             int d,
                             int k = 10,
                             Metric metric = Metric::L2) {
        return planOfFastDouble(n, q, d, k, metric).direct.has_value();
    };
    // Which of them several blocks a query finish.
    const auto isSpread = [](idx_t n, idx_t q, int k) {
        const auto plan = planOfFastDouble(n, q, 16, k).direct;
        return plan && plan->spread;
    };
    EXPECT_TRUE(isSpread(1 << 20, 1, 1024));
    EXPECT_TRUE(isSpread(1 << 20, 1, 2048));
    EXPECT_FALSE(isSpread(1 << 20, 1, 512));
    EXPECT_FALSE(isSpread(10000, 1, 1024));
    EXPECT_TRUE(isDirect(1 << 20, 1, 16));
    EXPECT_TRUE(isDirect(1 << 20, 1, 32, 2048));
    EXPECT_FALSE(isDirect(1 << 20, 1, 32, 2049));
    EXPECT_FALSE(isDirect(1 << 25, 1, 32));
    EXPECT_FALSE(isDirect(1 << 20, 16, 16));
    EXPECT_TRUE(isDirect(10000, 16, 128));
    EXPECT_FALSE(isDirect(1000, 100, 128)); // a matrix
    EXPECT_FALSE(isDirect(10000, 1000, 128));
    // Scans for products of few dimensions take longer than others.
    EXPECT_TRUE(isDirect(524288, 7, 8, 10, Metric::InnerProduct));
    EXPECT_FALSE(isDirect(524288, 7, 9, 10, Metric::InnerProduct));
    EXPECT_FALSE(isDirect(1300000, 3, 8, 10, Metric::InnerProduct));
    EXPECT_FALSE(isDirect(524288, 7, 8));
}

/// Of up to 3 queries from 48 dimensions on, of up to 16 from 9, where they are
/// not given limits; of more from 4.
TEST(FlatKnnPlan, ImagesHelpFromSomeDimensionsOn) {
    const auto helps = [](idx_t q, int d, const float* limits = nullptr) {
        FlatKnnProblem p;
        p.numQueries = q;
        p.d = d;
        p.limits = limits;
        return searchImageHelps(p);
    };
    const float limit = 1;
    for (idx_t q : {1, 3}) {
        EXPECT_FALSE(helps(q, 47) || helps(q, 47, &limit)) << q;
        EXPECT_TRUE(helps(q, 48)) << q;
    }
    for (idx_t q : {4, 16}) {
        EXPECT_FALSE(helps(q, 8) || helps(q, 3, &limit)) << q;
        EXPECT_TRUE(helps(q, 9) && helps(q, 4, &limit)) << q;
    }
    EXPECT_FALSE(helps(17, 3));
    EXPECT_TRUE(helps(17, 4));
}

/// Distances to a sample are of differences where those of the scan are.
TEST(FlatKnnPlan, Samples) {
    const auto sampling = [](int d, Metric metric) -> std::string {
        FlatKnnProblem p;
        p.metric = metric;
        p.numVectors = 32769;
        p.numQueries = 4096;
        p.d = d;
        p.k = 17;
        const auto plan = planFused(p, size_t(1) << 40);
        return plan && plan->sampling ? plan->sampling->name : "none";
    };
    for (int d : {1, 2, 3}) {
        EXPECT_EQ(sampling(d, Metric::L2), "pairwise");
        EXPECT_EQ(sampling(d, Metric::InnerProduct), "gemm");
        EXPECT_EQ(sampling(d, Metric::L1), "pairwise");
    }
    const auto strips = planOfFastDouble(32769, 4096, 4, 17).fused;
    EXPECT_TRUE(strips && !strips->sampling);
}

/// Every selection of the run fits the scratch that the plan has set aside.
TEST(FlatKnnPlan, ScratchSufficesForEverySelection) {
    for (const PlanCase& c : cases()) {
        SCOPED_TRACE(c.describe());
        const FlatKnnProblem whole = c.problem();
        for (size_t budget : kBudgets) {
            const FlatKnnPlan plan = planFlatKnn(whole, budget);
            if (!plan.method) {
                continue; // no selections
            }
            const FlatKnnProblem p = generatorProblem(whole, plan);
            WorkspaceSlices slices;
            const FlatKnnScratch scratch(whole, plan, slices);
            const idx_t sets = (c.q + plan.tileQueries - 1) / plan.tileQueries;
            const idx_t last = c.q - (sets - 1) * plan.tileQueries;
            for (idx_t queries : {plan.tileQueries, last}) {
                const idx_t tiles = plan.numVectorTiles;
                for (idx_t t : {idx_t(0), tiles / 2, tiles - 1}) {
                    const auto select = tileSelection(
                            p,
                            plan,
                            queries,
                            plan.tileBegin(t + 1, c.n) -
                                    plan.tileBegin(t, c.n));
                    ASSERT_LE(
                            selectWorkspaceBytes(select), scratch.select.bytes);
                }
                for (int filled = 2; filled <= plan.slots; ++filled) {
                    const auto select =
                            mergeSelection(p, plan, queries, filled);
                    ASSERT_LE(
                            selectWorkspaceBytes(select), scratch.select.bytes);
                }
            }
        }
    }
}

/// What the header says of the least scratch, with room for other algorithms
/// in the tuning table.
TEST(FlatKnnPlan, LeastScratch) {
    for (const PlanCase& c : cases()) {
        SCOPED_TRACE(c.describe());
        FlatKnnProblem p = c.problem();
        const float norm = 0;
        p.vectorNorms = &norm;
        p.numQueries = std::min<idx_t>(c.q, 1000);
        const size_t least = planFlatKnn(p, 0).bytes;
        size_t most = 16 * kMiB + 40 * std::min<size_t>(c.k, c.n);
        if (c.k > kMaxSelectK) {
            const size_t k = c.k;
            const size_t n = c.n;
            most += 2 * std::min(100 * k, 6 * n + 16 * std::min(k, n));
        }
        EXPECT_LE(least, most);
        // A plan of so much is that plan, and no plan takes less.
        EXPECT_EQ(planFlatKnn(p, least).bytes, least);
        EXPECT_GE(planFlatKnn(p, size_t(1) << 40).bytes, least);
        EXPECT_GT(least, 0u);
    }
}

/// Limits from strips where they pay, on an H200, and else what paid before.
TEST(FlatKnnPlan, Strips) {
    const auto planned = [](idx_t n, idx_t q, int k) {
        FlatKnnProblem p;
        p.numVectors = n;
        p.numQueries = q;
        p.d = 128;
        p.k = k;
        p.device.singleToDouble = 2;
        p.device.computeCapability = 90;
        return planFlatKnn(p, size_t(1) << 30);
    };
    const auto stripsOf = [&](idx_t n, idx_t q, int k) {
        const FlatKnnPlan plan = planned(n, q, k);
        return plan.fused ? plan.fused->strips.perRow : 0;
    };
    EXPECT_GE(stripsOf(4096, 10240, 32), 128u);
    EXPECT_GE(stripsOf(65536, 10240, 100), 400u);
    EXPECT_GE(stripsOf(1024, 10240, 8), 32u);
    EXPECT_GE(stripsOf(1024, 262144, 32), 128u);
    EXPECT_GE(stripsOf(4096, 10240, 100), 200u);
    // Few queries: strips whose chunks fill the GPU.
    EXPECT_GE(stripsOf(99000, 1000, 10), 500u);
    EXPECT_LE(stripsOf(99000, 10240, 10), 128u);
    // A sample costs less than a scan of all.
    EXPECT_EQ(stripsOf(1 << 20, 10240, 10), 0u);
    // The nearest one has a scan of its own.
    EXPECT_TRUE(planned(4096, 10240, 1).nearest);
    // Few pairs: all distances.
    EXPECT_EQ(stripsOf(300, 100, 10), 0u);
}

} // namespace
} // namespace faiss_bits::test
