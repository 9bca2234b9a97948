/// Searches of lists by estimates (kernels/ivf/IvfKnn.h): both ways, which the
/// plan is made to take, of every coding, layout and dimension.

#include <string>

#include "tests/ivf/CodingKinds.h"
#include "tests/ivf/IvfKernelHarness.h"

namespace faiss_bits::test {
namespace {

/// Product codes with less usual bits.
constexpr CodingKind kOtherKinds[] = {
        {"Product6", ListCoding::Product, ListLayout::Interleaved, 6},
        {"Product4", ListCoding::Product, ListLayout::Interleaved, 4}};

/// Parts of a product code: of four components where they can be.
int partsOf(int d) {
    for (int dims : {4, 3, 2}) {
        if (d % dims == 0) {
            return d / dims;
        }
    }
    return d;
}

KernelCase caseOf(const CodingKind& kind, int d) {
    KernelCase c;
    c.d = d;
    c.coding = kind.coding;
    c.layout = kind.layout;
    c.partBits = kind.partBits;
    c.numParts = partsOf(d);
    c.lengths = unevenLengths(16, 60, uint32_t(d));
    c.seed = uint32_t(d) + 7;
    return c;
}

class IvfEstimates : public GpuTest,
                     public testing::WithParamInterface<CodingKind> {
   protected:
    /// Queries of cases that were searched again, of both ways together.
    void search(const std::vector<int>& dims) {
        for (int d : dims) {
            idx_t lost = 0;
            idx_t queries = 0;
            for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
                for (bool isResidual : {false, true}) {
                    if (isResidual &&
                        GetParam().coding == ListCoding::Float32) {
                        continue;
                    }
                    KernelCase c = caseOf(GetParam(), d);
                    c.metric = metric;
                    c.isResidual = isResidual;
                    c.k = 1 + d % 5;
                    c.lengths64 = d % 2;
                    c.idKind = d % 3 == 0 ? ListIds::Given32
                            : d % 3 == 1  ? ListIds::Given64
                                          : ListIds::Places;
                    const KernelLists lists(c);
                    lost += lists.expectExactByEstimates();
                    queries += 2 * c.q;
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
            // In few dimensions many are as near as the bound can tell.
            if (d >= 16) {
                EXPECT_LE(lost, queries / 10) << "d=" << d;
            }
        }
    }
};

TEST_P(IvfEstimates, SmallDims) {
    search({3, 33, 130});
}

TEST_P(IvfEstimates, AllDims) {
    search({1,
            2,
            4,
            15,
            16,
            31,
            32,
            63,
            64,
            65,
            127,
            128,
            129,
            160,
            200,
            256,
            257,
            384,
            768});
}

TEST_P(IvfEstimates, SmallPartsOfProducts) {
    if (GetParam().coding != ListCoding::Product) {
        return; // others have no parts
    }
    for (int d : {64, 160}) {
        for (int dims : {1, 2, 4, 8, 16, 32}) {
            for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
                KernelCase c = caseOf(GetParam(), d);
                c.numParts = d / dims;
                c.metric = metric;
                c.isResidual = dims % 3 == 2;
                const KernelLists lists(c);
                lists.expectExactByEstimates();
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_P(IvfEstimates, Values) {
    for (ListFill fill :
         {ListFill::Integers,
          ListFill::Equal,
          ListFill::Duplicates,
          ListFill::Offset,
          ListFill::Tiny,
          ListFill::Small,
          ListFill::Huge,
          ListFill::Mixed,
          ListFill::NotFinite}) {
        for (int d : {3, 40, 128, 200}) {
            for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
                KernelCase c = caseOf(GetParam(), d);
                c.fill = fill;
                c.metric = metric;
                c.isResidual = c.coding != ListCoding::Float32 && d % 16 != 0;
                c.q = 16;
                const KernelLists lists(c);
                const idx_t lost = lists.expectExactByEstimates();
                if (HasFatalFailure()) {
                    return;
                }
                // Far from the origin the center helps.
                if (fill == ListFill::Offset && metric == Metric::L2 &&
                    d >= 40 && c.coding == ListCoding::Float32) {
                    EXPECT_LE(lost, c.q / 5) << c;
                }
            }
        }
    }
}

TEST_P(IvfEstimates, SmallFilters) {
    for (double selected : {0.0, 0.02, 0.5, 0.97}) {
        for (bool evenWords : {false, true}) {
            for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
                KernelCase c = caseOf(GetParam(), 20);
                c.metric = metric;
                c.selected = selected;
                c.evenWords = evenWords;
                const KernelLists lists(c);
                lists.expectExact(lists.run(EstimateMode::All));
                if (selected >= 0.5) { // else near lists have too few
                    lists.expectExact(lists.run(EstimateMode::Near));
                }
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// In one search: of a few vectors behind the last 32 of a list few are
/// candidates, of all others many (IvfRescoreParams::mostOfFew).
TEST_P(IvfEstimates, SmallGroupsOfFewAndOfManyCandidates) {
    for (int d : {20, 130}) {
        for (idx_t q : {50, 150}) {
            KernelCase c = caseOf(GetParam(), d);
            c.q = q;
            c.isResidual = c.coding != ListCoding::Float32 && q == 50;
            c.lengths = {
                    60, 33, 34, 36, 40, 48, 0, 60, 33, 65, 97, 35, 1, 44, 2};
            c.nprobe = 15;
            const KernelLists lists(c);
            lists.expectExactByEstimates();
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Grids of one multiprocessor: a block has one item of estimates after
/// another, and one group of candidates, some of more than a block takes at a
/// time, after another.
TEST_P(IvfEstimates, SmallGridsOfFewBlocks) {
    for (int d : {20, 128, 130}) {
        for (double selected : {1.0, 0.6}) {
            KernelCase c = caseOf(GetParam(), d);
            c.multiprocessors = 1;
            c.metric = d == 20 ? Metric::InnerProduct : Metric::L2;
            c.isResidual = c.coding != ListCoding::Float32 && d == 128;
            c.lengths = {70, 300, 33, 0, 257, 1, 64, 31, 90, 256, 40, 129};
            c.q = 130; // the last tile of a list has few
            c.nprobe = 11;
            c.selected = selected;
            const KernelLists lists(c);
            lists.expectExactByEstimates();
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Lists at the ends of groups, warps and items; queries at those of tiles.
TEST_P(IvfEstimates, Edges) {
    const bool isFloat = GetParam().coding == ListCoding::Float32;
    for (idx_t q : {40, 63, 64, 65, 127, 513, 1025}) {
        if (!isFloat && q != 65 && q != 513) {
            continue; // nothing of theirs depends on q
        }
        for (int d : {8, 128, 136}) {
            KernelCase c = caseOf(GetParam(), d);
            c.q = q;
            c.nprobe = 6;
            c.k = q == 64 ? 1 : 4;
            // Of those that set limits none is empty.
            c.lengths = {255, 256, 257, 288, 320, 300};
            const KernelLists lists(c);
            const idx_t lost = lists.expectExactByEstimates();
            if (d > 8) {
                EXPECT_LE(lost, q / 5) << c;
            }
            c.lengths = {1, 31, 32, 33, 63, 64, 65, 95, 0, 512, 513};
            c.nprobe = 5;
            const KernelLists others(c);
            others.expectExact(others.run(EstimateMode::All));
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Codings,
        IvfEstimates,
        testing::ValuesIn(kCodingKinds),
        [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
        OtherCodings,
        IvfEstimates,
        testing::ValuesIn(kOtherKinds),
        [](const auto& info) { return std::string(info.param.name); });

class IvfEstimatesRuns : public GpuTest {};

TEST_F(IvfEstimatesRuns, SmallSameBitsWhateverTheScratch) {
    for (int d : {24, 150}) {
        KernelCase c = caseOf(kCodingKinds[0], d);
        c.q = 100;
        const KernelLists lists(c);
        for (EstimateMode mode : {EstimateMode::All, EstimateMode::Near}) {
            const IvfKnnProblem p = lists.problem(mode);
            const KernelResult found = lists.run(mode);
            lists.expectExact(found);
            EXPECT_TRUE(found.sameAs(lists.run(p, lists.kMaxBytes, 0)));
            // In parts, of which the last is smaller, and one by one.
            const size_t all = planIvfKnn(p, lists.kMaxBytes).bytes;
            const IvfKnnPlan parts = planIvfKnn(p, all / 2);
            EXPECT_TRUE(parts.byEstimates());
            EXPECT_LT(parts.rowsAtATime, c.q);
            EXPECT_TRUE(found.sameAs(lists.run(p, all / 2)));
            EXPECT_EQ(planIvfKnn(p, 0).rowsAtATime, 1);
            EXPECT_TRUE(found.sameAs(lists.run(p, 0)));
        }
    }
}

TEST_F(IvfEstimatesRuns, SmallWhatIsNotProvedIsSearchedAgain) {
    // All are as near: more than there are candidates, or there is room for.
    KernelCase c = caseOf(kCodingKinds[0], 17);
    c.fill = ListFill::Equal;
    const KernelLists lists(c);
    for (EstimateMode mode : {EstimateMode::All, EstimateMode::Near}) {
        const KernelResult found = lists.run(mode);
        lists.expectExact(found);
        EXPECT_EQ(found.lost, c.q);
    }
    // Without a bound, a query's vectors may all be the nearest.
    c.fill = ListFill::NotFinite;
    c.d = 120;
    const KernelLists others(c);
    EXPECT_GT(others.expectExactByEstimates(), 0);
}

TEST_F(IvfEstimatesRuns, SmallKAroundWhatThereIs) {
    KernelCase c = caseOf(kCodingKinds[0], 12);
    c.lengths = unevenLengths(8, 60, 5);
    c.nprobe = 8;
    for (int k : {2, 10, 31, 32, 33, 100, 127, 128}) {
        c.k = k;
        const KernelLists lists(c);
        lists.expectExact(lists.run(EstimateMode::All));
    }
    // Some queries have fewer vectors.
    c.q = 40;
    c.lengths = {300, 1, 2, 0, 250, 3};
    c.nprobe = 4;
    for (int k : {5, 40}) {
        c.k = k;
        const KernelLists lists(c);
        lists.expectExact(lists.run(EstimateMode::All));
    }
}

TEST_F(IvfEstimatesRuns, OneListHasNearlyAll) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : {10, 140}) {
            KernelCase c = caseOf(kCodingKinds[0], d);
            c.metric = metric;
            c.lengths.assign(40, 7);
            c.lengths[13] = 40 * 7 * 9;
            c.q = 150;
            const KernelLists lists(c);
            const KernelResult found = lists.run(EstimateMode::All);
            lists.expectExact(found);
            if (d > 10) {
                EXPECT_LE(found.lost, c.q / 5) << c;
            }
        }
    }
}

TEST_F(IvfEstimatesRuns, MoreQueriesThanAGridIsHigh) {
    KernelCase c = caseOf(kCodingKinds[0], 4);
    c.lengths = {40, 0, 64, 50, 33};
    c.nprobe = 1;
    c.q = 65536 + 300;
    c.k = 2;
    const KernelLists lists(c);
    lists.expectExact(lists.run(EstimateMode::All));
    // As every query reads its lists, and in tiles.
    IvfKnnProblem p = lists.plainProblem();
    p.mayWait = false;
    EXPECT_TRUE(planIvfKnn(p, lists.kMaxBytes).listMajor);
    lists.expectExact(lists.run(p));
    p.device.singleToDouble = 64;
    EXPECT_FALSE(planIvfKnn(p, lists.kMaxBytes).listMajor);
    lists.expectExact(lists.run(p));
}

} // namespace
} // namespace faiss_bits::test
