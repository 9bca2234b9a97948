/// Range searches of lists by bounds (kernels/ivf/IvfRangeFound.h) and with all
/// distances, of every coding, against the canonical distances.

#include "tests/ivf/RangeBoundsHarness.h"

namespace faiss_bits::test {
namespace {

class IvfRangeBounds : public GpuTest {};

constexpr ListCoding kCodings[] = {
        ListCoding::Float32,
        ListCoding::Float16,
        ListCoding::Scalar8,
        ListCoding::Scalar6,
        ListCoding::Scalar4,
        ListCoding::Product};

KernelCase someCase(Metric metric, ListCoding coding, ListLayout layout) {
    KernelCase c;
    c.metric = metric;
    c.coding = coding;
    c.layout = layout;
    c.numParts = 11;
    c.lengths = unevenLengths(16, 60, 5);
    c.idKind = layout == ListLayout::Rows ? ListIds::Places : ListIds::Given32;
    return c;
}

TEST_F(IvfRangeBounds, EveryCodingAndRadius) {
    const float inf = HUGE_VALF;
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (ListCoding coding : kCodings) {
            for (ListLayout layout :
                 {ListLayout::Interleaved, ListLayout::Rows}) {
                if (coding == ListCoding::Scalar6 &&
                    layout == ListLayout::Rows) {
                    continue; // there is none
                }
                const RangeCase some(someCase(metric, coding, layout));
                for (double part : {0.0, 0.01, 0.04}) {
                    EXPECT_TRUE(some.runBounds(some.radius(part)));
                }
                EXPECT_FALSE(some.runBounds(some.radius(0.5)));
                for (float radius :
                     {some.radius(0.01), some.radius(0.6), inf, -inf, 0.0f}) {
                    some.run(IvfRangeWay::Bounds, radius);
                    some.run(IvfRangeWay::Distances, radius);
                }
            }
        }
    }
}

/// A few of each coding, for compute-sanitizer, whose racecheck takes minutes
/// for all of them at once.
class IvfRangeCodings : public GpuTest,
                        public testing::WithParamInterface<ListCoding> {};

TEST_P(IvfRangeCodings, SmallBothWays) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (ListLayout layout : {ListLayout::Interleaved, ListLayout::Rows}) {
            if (GetParam() == ListCoding::Scalar6 &&
                layout == ListLayout::Rows) {
                continue; // there is none
            }
            KernelCase c = someCase(metric, GetParam(), layout);
            c.lengths = unevenLengths(16, 40, 5);
            const RangeCase some(c);
            EXPECT_TRUE(some.runBounds(some.radius(0.01), some.leastScratch()));
            some.run(IvfRangeWay::Distances, some.radius(0.3));
        }
    }
}

std::string nameOf(const testing::TestParamInfo<ListCoding>& info) {
    static const char* const names[] = {
            "Float32", "Float16", "Scalar8", "Scalar6", "Scalar4", "Product"};
    return names[int(info.param)];
}

INSTANTIATE_TEST_SUITE_P(
        Each,
        IvfRangeCodings,
        testing::ValuesIn(kCodings),
        nameOf);

/// What has no bound, or a wide one, is looked at, and nothing is lost.
TEST_F(IvfRangeBounds, SmallEveryFill) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int fill = 0; fill <= int(ListFill::NotFinite); ++fill) {
            KernelCase c = someCase(
                    metric, ListCoding::Float32, ListLayout::Interleaved);
            c.fill = ListFill(fill);
            const RangeCase some(c);
            for (double part : {0.0, 0.02, 0.3, 1.0}) {
                some.run(IvfRangeWay::Bounds, some.radius(part));
            }
            some.runBounds(some.radius(0.02));
        }
    }
}

TEST_F(IvfRangeBounds, SmallFiltered) {
    for (double selected : {0.02, 0.5, 0.97}) {
        KernelCase c = someCase(
                Metric::L2, ListCoding::Float32, ListLayout::Interleaved);
        c.selected = selected;
        c.evenWords = selected == 0.5;
        const RangeCase some(c);
        for (double part : {0.0, 0.05, 1.0}) {
            some.run(IvfRangeWay::Bounds, some.radius(part));
        }
        EXPECT_TRUE(some.runBounds(some.radius(0.05)));
    }
}

TEST_F(IvfRangeBounds, Dims) {
    for (int d : {1, 2, 16, 17, 127, 128, 129, 300}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            KernelCase c = someCase(
                    metric, ListCoding::Float32, ListLayout::Interleaved);
            c.d = d;
            c.q = 130;
            const RangeCase some(c);
            for (double part : {0.001, 0.03}) {
                some.run(IvfRangeWay::Bounds, some.radius(part));
            }
            EXPECT_TRUE(some.runBounds(some.radius(0.01)));
        }
    }
}

/// One list that a query names again and again: each vector as often, in the
/// order of the probes.
TEST_F(IvfRangeBounds, SmallListsThatAreNamedTwice) {
    KernelCase c =
            someCase(Metric::L2, ListCoding::Float32, ListLayout::Interleaved);
    for (int lists : {1, 2, 3}) {
        c.lengths.assign(size_t(lists), 40);
        const RangeCase some(c); // sixteen probes of these
        EXPECT_TRUE(some.runBounds(some.radius(0.03)));
        some.run(IvfRangeWay::Bounds, some.radius(0.9));
    }
}

/// Some queries have more in range than there is room for: what is found lies
/// side by side then.
TEST_F(IvfRangeBounds, SmallFewQueriesWithMuchInRange) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        KernelCase c =
                someCase(metric, ListCoding::Float32, ListLayout::Interleaved);
        c.lengths.assign(16, 300);
        c.d = 16;
        c.q = 70;
        RangeCase some(c);
        std::mt19937 random(3);
        std::uniform_real_distribution<float> unit(-1, 1);
        std::vector<float> queries(size_t(c.q) * c.d);
        for (idx_t i = 0; i < c.q; ++i) {
            // Near the middle, or long: these have most of what is in range.
            const bool isNear = metric == Metric::L2;
            const float scale = (i % 23 == 5) == isNear ? 0.1f : 3.0f;
            for (int j = 0; j < c.d; ++j) {
                queries[i * c.d + j] = scale * unit(random);
            }
        }
        some.setQueries(queries);
        const float radius = some.radius(0.02);
        const size_t least = some.leastScratch();
        const auto plan = planIvfFound(some.problem(), least);
        ASSERT_TRUE(plan);
        EXPECT_GT(some.mostInRange(radius), plan->search.room);
        EXPECT_TRUE(some.runBounds(radius, least));
        // Room for what is found, but not for as many candidates.
        for (const size_t bytes : {2 * least, 4 * least, 8 * least}) {
            const auto more = planIvfFound(some.problem(), bytes);
            ASSERT_TRUE(more);
            EXPECT_GT(some.mostInRange(radius), more->search.candidates);
            EXPECT_GT(more->search.room, more->search.candidates);
            EXPECT_TRUE(some.runBounds(radius, bytes));
            EXPECT_TRUE(
                    bytes < 8 * least ||
                    more->search.room >= some.mostInRange(radius));
        }
        EXPECT_TRUE(some.runBounds(radius));
        some.run(IvfRangeWay::Bounds, radius);
    }
}

/// Scratch for some queries at a time; what is behind the last part's rows is
/// as it was.
TEST_F(IvfRangeBounds, Parts) {
    KernelCase c = someCase(
            Metric::InnerProduct, ListCoding::Scalar8, ListLayout::Interleaved);
    c.lengths.assign(40, 70);
    c.q = 1001;
    const RangeCase some(c);
    const float radius = some.radius(0.01);
    const auto whole = planIvfFound(some.problem(), kMostRangeBytes);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->search.rowsAtATime, c.q);
    const size_t least = some.leastScratch();
    EXPECT_LT(least, whole->bytes);
    for (int share : {2, 5, 9}) {
        EXPECT_TRUE(some.runBounds(radius, least / share));
        EXPECT_GT(some.parts(), share - 1);
    }
    EXPECT_FALSE(planIvfFound(some.problem(), least / 40));
}

} // namespace
} // namespace faiss_bits::test
