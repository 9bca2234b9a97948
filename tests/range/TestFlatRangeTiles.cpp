/// Range searches whatever way they go: scans on tensor cores, tiles of all
/// pairs, parts of results.

#include <utility>

#include "tests/common/ExpectError.h"
#include "tests/range/FlatRangeHarness.h"

namespace faiss_bits::test {
namespace {

class FlatRangeTiles : public GpuTest {};

constexpr Metric kProducts[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

/// Every kernel once, for compute-sanitizer.
TEST_F(FlatRangeTiles, SmallEveryWay) {
    RangeCase c;
    c.n = 1100;
    c.d = 24;
    for (const Metric metric :
         {Metric::L2,
          Metric::InnerProduct,
          Metric::Cosine,
          Metric::L1,
          Metric::JensenShannon}) {
        c.metric = metric;
        for (const double share : {0.0, 2.0}) {
            c.matrixShare = share;
            for (const int64_t q : {1, 20}) {
                c.q = q;
                c.oneIn = q == 1 ? 0 : 2;
                const RangeData data(c);
                data.expect(data.radiusFor(0.1));
            }
        }
    }
    c.metric = Metric::L1;
    c.oneIn = 0;
    c.n = 34000;
    c.d = 2;
    c.q = 2;
    c.maxScratch = 0;
    EXPECT_EQ(RangeData(c).expect(INFINITY), 2 * 34000);
}

TEST_F(FlatRangeTiles, TensorScans) {
    for (const Metric metric : kProducts) {
        for (const int64_t q : {17, 300, 1000}) {
            for (const int d : {20, 64, 128, 300}) {
                RangeCase c;
                c.metric = metric;
                c.n = 5000;
                c.q = q;
                c.d = d;
                c.seed = uint32_t(q + d);
                const RangeData data(c);
                EXPECT_STREQ(data.plan().method->name, "tensor");
                for (const double part : {0.0, 0.003, 0.1}) {
                    data.expect(data.radiusFor(part));
                }
            }
        }
    }
}

TEST_F(FlatRangeTiles, ImagesThatAreKept) {
    for (const Metric metric : kProducts) {
        for (const int64_t q : {1, 4, 16, 100}) {
            for (const DataType type :
                 {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
                RangeCase c;
                c.metric = metric;
                c.dataType = type;
                c.exactQueries =
                        metric != Metric::Cosine && type != DataType::Float32;
                c.n = 9000;
                c.q = q;
                c.d = 96;
                c.withImage = true;
                const RangeData data(c);
                EXPECT_STREQ(data.plan().method->name, "tensor");
                for (const double part : {0.0, 0.01, 1.0}) {
                    data.expect(data.radiusFor(part));
                }
            }
        }
    }
}

TEST_F(FlatRangeTiles, HardValuesOnTensorCores) {
    for (const Metric metric : kProducts) {
        for (const Hard hard : kHard) {
            for (const int64_t q : {5, 70}) {
                RangeCase c;
                c.metric = metric;
                c.n = 3000;
                c.q = q;
                c.d = 64;
                c.isHard = true;
                c.hard = hard;
                c.withImage = true;
                expectSelectivities(c);
            }
        }
    }
}

TEST_F(FlatRangeTiles, AllPairs) {
    for (const Metric metric :
         {Metric::L2,
          Metric::InnerProduct,
          Metric::Cosine,
          Metric::L1,
          Metric::Linf}) {
        for (const unsigned oneIn : {0u, 3u}) {
            RangeCase c;
            c.metric = metric;
            c.n = 2777;
            c.q = 150;
            c.oneIn = oneIn;
            c.matrixShare = 0;
            const RangeData data(c);
            ASSERT_GT(data.plan().matrixQueries, 0);
            for (const double part : {0.01, 0.4, 1.0}) {
                data.expect(data.radiusFor(part));
            }
            c.matrixShare = 2;
            const RangeData without(c);
            const float radius = data.radiusFor(0.3);
            EXPECT_EQ(data.search(radius).ids, without.search(radius).ids);
        }
    }
}

TEST_F(FlatRangeTiles, AllPairsOfHardValues) {
    for (const Metric metric : kProducts) {
        for (const Hard hard : kHard) {
            RangeCase c;
            c.metric = metric;
            c.q = 70;
            c.isHard = true;
            c.hard = hard;
            c.matrixShare = 0;
            expectSelectivities(c);
        }
    }
}

TEST_F(FlatRangeTiles, LittleScratchMakesParts) {
    for (const Metric metric : {Metric::L2, Metric::L1}) {
        RangeCase c;
        c.metric = metric;
        c.n = 40000;
        c.q = 40;
        c.d = 8;
        c.matrixShare = 2;
        const RangeData roomy(c);
        c.maxScratch = 0;
        const RangeData little(c);
        EXPECT_LT(little.plan().bytes, roomy.plan().bytes);
        for (const double part : {0.001, 0.1, 0.9}) {
            const float radius = roomy.radiusFor(part);
            const int64_t total = roomy.expect(radius);
            EXPECT_EQ(little.expect(radius), total);
        }
        EXPECT_GT(little.search(roomy.radiusFor(0.9)).parts, 40u);
    }
}

TEST_F(FlatRangeTiles, OneQueryInSeveralParts) {
    RangeCase c;
    c.n = 200000;
    c.q = 3;
    c.d = 4;
    c.maxScratch = 0;
    c.matrixShare = 2;
    const RangeData data(c);
    EXPECT_EQ(data.plan().capacity, 32768);
    EXPECT_EQ(data.expect(INFINITY), c.n * c.q);
    EXPECT_GT(data.search(INFINITY).parts, 9u);
}

TEST_F(FlatRangeTiles, TilesOfQueries) {
    RangeCase c;
    c.n = 60000;
    c.q = 1000;
    c.d = 16;
    const RangeData data(c);
    EXPECT_EQ(data.plan().tileQueries, 1000);
    c.tileQueries = 300;
    const RangeData less(c);
    for (const double part : {0.0, 0.001, 0.05}) {
        const float radius = data.radiusFor(part);
        const RangeFound whole = data.search(radius);
        const RangeFound tiles = less.search(radius);
        EXPECT_EQ(whole.ids, tiles.ids);
        EXPECT_EQ(whole.distances, tiles.distances);
        EXPECT_GT(tiles.parts, whole.parts);
        less.expect(radius);
    }
}

/// Of inner products with queries of any length some have most vectors, others
/// none; the items are as large as they become.
TEST_F(FlatRangeTiles, FewQueriesHaveMostResults) {
    RangeCase c;
    c.metric = Metric::InnerProduct;
    c.n = 70001;
    c.q = 1100;
    c.d = 16;
    c.longQueries = 50;
    for (const unsigned oneIn : {0u, 3u}) {
        c.oneIn = oneIn;
        const RangeData data(c);
        EXPECT_STREQ(data.plan().method->name, "tensor");
        EXPECT_EQ(data.plan().itemWords, 256u);
        for (const double part : {0.01, 0.5, 0.999}) {
            data.expect(data.radiusFor(part));
        }
    }
}

/// A tile whose candidates do not fit goes on in parts of its queries, whatever
/// it was counted to have.
TEST_F(FlatRangeTiles, CandidatesThatDoNotFit) {
    RangeCase c;
    c.n = 20000;
    c.q = 24;
    c.d = 16;
    c.matrixShare = 2;
    c.maxCapacity = 50000;
    const RangeData data(c);
    for (const double part : {0.0, 0.05, 0.3, 0.9}) {
        data.expect(data.radiusFor(part));
    }
    EXPECT_GT(data.search(data.radiusFor(0.9)).parts, 8u);
    EXPECT_EQ(data.search(data.radiusFor(0.0)).parts, 1u);
}

TEST_F(FlatRangeTiles, CountsWithoutResults) {
    for (const double share : {0.0, 2.0}) {
        RangeCase c;
        c.matrixShare = share;
        const RangeData data(c);
        const float radius = data.radiusFor(0.2);
        const RangeFound counted = data.search(radius, false);
        EXPECT_EQ(counted.total, data.search(radius).total);
        EXPECT_TRUE(counted.ids[0].empty());
    }
}

TEST_F(FlatRangeTiles, NothingToSearch) {
    RangeCase c;
    c.q = 5;
    const RangeData data(c);
    FlatKnnProblem p = data.problem();
    p.numVectors = 0;
    KeepingSink noVectors(5, true);
    const FlatRangePlan plan = planFlatRange(p, 1 << 30);
    DeviceBuffer<uint8_t> scratch(plan.bytes);
    runFlatRange(plan, p, 1, {scratch.data(), scratch.size()}, 0, noVectors);
    EXPECT_EQ(noVectors.queriesSeen(), 5);
    EXPECT_EQ(noVectors.found.total, 0);
    p = data.problem();
    p.numQueries = 0;
    KeepingSink noQueries(0, true);
    runFlatRange(planFlatRange(p, 1 << 30), p, 1, {nullptr, 0}, 0, noQueries);
    EXPECT_EQ(noQueries.found.parts, 0u);
}

TEST_F(FlatRangeTiles, BadArgumentsAreNamed) {
    const RangeData data(RangeCase{});
    const FlatRangePlan plan = data.plan();
    DeviceBuffer<uint8_t> scratch(plan.bytes);
    const Workspace workspace{scratch.data(), scratch.size()};
    KeepingSink sink(data.c.q, true);
    FlatKnnProblem p = data.problem();
    EXPECT_TRUE(throwsNaming(
            [&] { runFlatRange(plan, p, NAN, workspace, 0, sink); },
            "radius",
            "NaN"));
    p.queries = nullptr;
    EXPECT_TRUE(throwsNaming(
            [&] { runFlatRange(plan, p, 1, workspace, 0, sink); },
            "queries",
            "nullptr"));
    p = data.problem();
    p.vectors = nullptr;
    EXPECT_TRUE(throwsNaming(
            [&] { runFlatRange(plan, p, 1, workspace, 0, sink); },
            "vectors",
            "nullptr"));
    p = data.problem();
    EXPECT_TRUE(throwsNaming(
            [&] {
                runFlatRange(plan, p, 1, {nullptr, 0}, 0, sink);
            },
            "workspace"));
    // Bits of its rows would be taken for those of vectors.
    p = data.problem();
    p.searchImage = scratch.data();
    EXPECT_TRUE(throwsNaming(
            [&] { runFlatRange(plan, p, 1, workspace, 0, sink); },
            "imageInOrder",
            "0"));
    EXPECT_EQ(sink.found.parts, 0u);
}

} // namespace
} // namespace faiss_bits::test
