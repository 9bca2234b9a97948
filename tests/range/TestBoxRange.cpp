/// Range searches through boxes: ids, order and bits.

#include "tests/common/ExpectError.h"
#include "tests/range/FlatRangeHarness.h"

namespace faiss_bits::test {
namespace {

class BoxRange : public GpuTest {};

constexpr int64_t kChunk = 32768; // the smallest

RangeCase caseOf(Metric metric, int d) {
    RangeCase c;
    c.metric = metric;
    c.d = d;
    c.chunkIds = kChunk;
    return c;
}

const std::vector<Metric> kMetrics = {Metric::L2, Metric::L1, Metric::Linf};

TEST_F(BoxRange, EveryMetricAndDimension) {
    for (const Metric metric : kMetrics) {
        for (int d = 1; d <= kMostBoxDims; ++d) {
            expectSelectivities(caseOf(metric, d));
        }
    }
}

TEST_F(BoxRange, SizesAroundThoseOfBoxesAndChunks) {
    for (const int64_t n :
         {1, 31, 32, 33, 1023, 1024, 1025, 32767, 32768, 32769, 65537}) {
        RangeCase c = caseOf(Metric::L2, 3);
        c.n = n;
        c.q = 5;
        expectSelectivities(c);
    }
}

TEST_F(BoxRange, ManyQueriesAndChunks) {
    // From one warp to count a unit to eight, and sorted queries.
    for (const int64_t q : {1, 255, 256, 3000}) {
        RangeCase c = caseOf(Metric::L2, 3);
        c.n = 100000;
        c.q = q;
        expectSelectivities(c);
    }
    RangeCase c = caseOf(Metric::L2, 3);
    c.n = 300000;
    c.q = 40;
    c.chunkIds = int64_t(1) << 18;
    expectSelectivities(c);
}

/// Results of a query and chunk: few enough for the lanes of a warp, for a warp
/// (128, 256 or 448, by their mean), for a block's list (4096), and more.
void expectEveryNumber(RangeCase c) {
    c.n = 12000;
    for (const bool areSorted : {false, true}) {
        c.areSorted = areSorted;
        const RangeData data(c);
        for (const double part :
             {0.001, 0.008, 0.015, 0.03, 0.05, 0.1, 0.3, 0.6}) {
            data.expect(data.radiusFor(part));
        }
    }
}

TEST_F(BoxRange, EveryNumberOfResults) {
    for (const unsigned oneIn : {0u, 2u}) {
        RangeCase c = caseOf(Metric::L2, 3);
        c.q = 5;
        c.oneIn = oneIn;
        expectEveryNumber(c);
    }
}

TEST_F(BoxRange, EveryNumberOfResultsOfManyQueries) {
    // So many that one warp has those with few.
    RangeCase c = caseOf(Metric::L2, 3);
    c.q = 17 * deviceTraits().multiprocessors;
    expectEveryNumber(c);
}

TEST_F(BoxRange, MoreLargeBoxesThanAreLookedIntoAtATime) {
    RangeCase c = caseOf(Metric::L2, 3);
    c.n = 90000; // 88 large boxes, of which 64 are
    c.q = 3;
    c.chunkIds = 98304;
    c.oneIn = 40; // results that are listed, of all boxes
    const RangeData data(c);
    EXPECT_GT(data.expect(INFINITY), 0);
}

TEST_F(BoxRange, HardValues) {
    for (const Metric metric : kMetrics) {
        for (const Hard hard : kHard) {
            for (const int d : {2, 3, 4}) {
                RangeCase c = caseOf(metric, d);
                c.n = 1100;
                c.isHard = true;
                c.hard = hard;
                expectSelectivities(c);
            }
        }
    }
}

TEST_F(BoxRange, QueriesThatAreNotFinite) {
    for (const Metric metric : kMetrics) {
        for (int c = 0; c < 3; ++c) {
            for (const float value : {NAN, INFINITY, -INFINITY}) {
                RangeCase odd = caseOf(metric, 3);
                odd.oddComponent = c;
                odd.oddValue = value;
                const RangeData data(odd);
                data.expect(0.3f);
                data.expect(INFINITY);
            }
        }
    }
}

TEST_F(BoxRange, TiesAtTheRadiusAreOut) {
    for (const Metric metric : kMetrics) {
        RangeCase c = caseOf(metric, 3);
        c.n = 40000;
        c.areFew = true;
        expectSelectivities(c);
    }
}

TEST_F(BoxRange, Filters) {
    for (const Metric metric : kMetrics) {
        for (const unsigned oneIn : {2u, 100u, 100000u}) {
            RangeCase c = caseOf(metric, 3);
            c.n = 70011;
            c.oneIn = oneIn;
            expectSelectivities(c);
        }
    }
}

TEST_F(BoxRange, LittleScratchMakesManyParts) {
    RangeCase c = caseOf(Metric::L2, 3);
    c.n = 70000;
    c.q = 300;
    c.maxScratch = 0; // a query at a time, and its chunks
    const RangeData least(c);
    EXPECT_GT(least.expect(least.radiusFor(1.0)), 0);
    EXPECT_GE(least.search(least.radiusFor(1.0)).parts, size_t(2 * c.q));
    c.maxScratch = 1 << 19; // some queries
    const RangeData some(c);
    EXPECT_GT(some.expect(some.radiusFor(0.01)), 0);
    const size_t parts = some.search(some.radiusFor(0.01)).parts;
    EXPECT_GT(parts, 1u);
    EXPECT_LT(parts, size_t(c.q));
}

TEST_F(BoxRange, ResultsThatNobodyWants) {
    RangeCase c = caseOf(Metric::L2, 3);
    const RangeData data(c);
    const float radius = data.radiusFor(0.1);
    EXPECT_EQ(data.search(radius, false).total, data.search(radius).total);
}

TEST_F(BoxRange, RadiusOfNoRange) {
    for (const Metric metric : kMetrics) {
        const RangeData data(caseOf(metric, 3));
        for (const float radius : {-1.0f, -0.0f, 0.0f, -INFINITY}) {
            EXPECT_EQ(data.expect(radius), 0);
        }
        EXPECT_EQ(data.expect(INFINITY), data.c.n * data.c.q);
    }
}

TEST_F(BoxRange, NoQueries) {
    RangeCase c = caseOf(Metric::L2, 3);
    c.q = 0;
    EXPECT_EQ(RangeData(c).search(1.0f).total, 0);
}

TEST_F(BoxRange, BadArguments) {
    const RangeData data(caseOf(Metric::L2, 3));
    EXPECT_TRUE(throwsNaming([&] { data.search(NAN); }, "radius", "NaN"));
    RangeBoxesShape shape;
    shape.n = 10;
    shape.d = 3;
    EXPECT_TRUE(canHaveBoxes(shape));
    for (const auto& [metric, d, n, chunkIds] :
         {std::tuple<Metric, int, idx_t, idx_t>{Metric::Lp, 3, 10, kChunk},
          {Metric::L2, 0, 10, kChunk},
          {Metric::L2, kMostBoxDims + 1, 10, kChunk},
          {Metric::L2, 3, 0, kChunk},
          {Metric::L2, 3, INT32_MAX, kChunk},
          {Metric::L2, 3, 10, 1000},
          {Metric::L2, 3, 10, 2 * idx_t(kMostChunkIds)}}) {
        shape.metric = metric;
        shape.d = d;
        shape.n = n;
        shape.chunkIds = chunkIds;
        EXPECT_FALSE(canHaveBoxes(shape));
        EXPECT_TRUE(throwsNaming(
                [&] { rangeBoxesBytes(shape); },
                "chunkIds",
                std::to_string(chunkIds)));
    }
}

} // namespace
} // namespace faiss_bits::test
