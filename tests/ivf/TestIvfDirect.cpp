/// Direct searches of lists (kernels/ivf/IvfDirect.h), each way of them forced,
/// and the ways for all distances that they come before.

#include <optional>
#include <string>
#include <tuple>

#include "tests/ivf/CodingKinds.h"
#include "tests/ivf/DirectHarness.h"

namespace faiss_bits::test {
namespace {

/// Whether queries can share product codes: rows of bytes, of parts of so many
/// components, an even number of them in a quarter of a vector.
bool canShareProduct(const KernelCase& c) {
    const int dims = c.d / c.numParts;
    return c.layout == ListLayout::Rows && c.partBits == 8 &&
            c.numParts % 8 == 0 && c.d <= 256 && c.k <= 128 &&
            (dims == 2 || dims == 4 || dims == 8 || dims == 16);
}

/// Lists that are given, by both direct ways.
void expectDirect(const KernelLists& lists) {
    const KernelCase& c = lists.c;
    const IvfKnnProblem p = lists.plainProblem();
    for (bool shared : {false, true}) {
        const IvfKnnPlan plan = planOf(p, false, shared);
        if (shared && c.coding == ListCoding::Product && !canShareProduct(c)) {
            ASSERT_FALSE(plan.direct) << c;
            continue;
        }
        ASSERT_TRUE(plan.direct) << c;
        SCOPED_TRACE(shared ? "shared" : "direct");
        lists.expectExact(lists.run(plan, p));
        // Whatever the scratch holds.
        lists.expectExact(lists.run(plan, p, 0));
    }
}

/// Also by all distances.
void expectExact(const KernelCase& c) {
    const KernelLists lists(c);
    expectDirect(lists);
    SCOPED_TRACE("all");
    const IvfKnnProblem p = lists.plainProblem();
    lists.expectExact(lists.run(planOfAll(p), p));
}

class IvfDirectKinds : public GpuTest,
                       public testing::WithParamInterface<CodingKind> {
   protected:
    static void setKind(KernelCase& c, int d) {
        c.d = d;
        c.coding = GetParam().coding;
        c.layout = GetParam().layout;
        c.partBits = GetParam().partBits;
        c.numParts = d % 4 == 0 ? d / 4 : d % 2 == 0 ? d / 2 : d;
    }

    void search(const std::vector<int>& dims) {
        for (int d : dims) {
            for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
                KernelCase c = someCase(uint32_t(d));
                c.metric = metric;
                setKind(c, d);
                c.isResidual = c.coding != ListCoding::Float32 && d % 3 == 0;
                c.lengths64 = d % 2;
                c.idKind = d % 3 == 0 ? ListIds::Given32
                        : d % 3 == 1  ? ListIds::Given64
                                      : ListIds::Places;
                c.selected = d % 5 == 1 ? 0.3 : 1;
                expectExact(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
};

TEST_P(IvfDirectKinds, SmallDims) {
    search({3, 33, 130});
}

TEST_P(IvfDirectKinds, FewDimensionsOfManyQueries) {
    // At both sides of the queries of a tile.
    for (int d : {4, 15, 24, 31, 32}) {
        for (int q : {16, 17, 90}) {
            KernelCase c = someCase(uint32_t(d * 100 + q));
            setKind(c, d);
            c.lengths = unevenLengths(4, 300, c.seed);
            c.isResidual = c.coding != ListCoding::Float32 && q == 17;
            c.selected = q == 90 ? 0.04 : 1;
            c.nprobe = 3;
            c.q = q;
            expectDirect(KernelLists(c));
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_P(IvfDirectKinds, SmallListsBeginAnywhere) {
    // As their components may; direct ways alone, as others want more.
    for (int d : {7, 128, 132}) {
        KernelCase c = someCase(uint32_t(d) + 60);
        setKind(c, d);
        c.listShift = c.coding == ListCoding::Float32 ? 4
                : c.coding == ListCoding::Float16     ? 2
                                                      : 1;
        expectDirect(KernelLists(c));
    }
}

TEST_P(IvfDirectKinds, AllDims) {
    search({1,
            2,
            4,
            7,
            8,
            9,
            31,
            32,
            63,
            64,
            96,
            127,
            128,
            129,
            136,
            256,
            768,
            1000,
            1024});
}

INSTANTIATE_TEST_SUITE_P(
        All,
        IvfDirectKinds,
        testing::ValuesIn(kCodingKinds),
        [](const auto& info) { return info.param.name; });

class IvfDirectSearch : public GpuTest {};

TEST_F(IvfDirectSearch, HardValues) {
    for (ListFill fill :
         {ListFill::Integers,
          ListFill::Equal,
          ListFill::Duplicates,
          ListFill::Huge,
          ListFill::Mixed,
          ListFill::Small,
          ListFill::NotFinite}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (int k : {1, 10, 100}) {
                for (int d : {5, 40}) {
                    KernelCase c = someCase(uint32_t(fill) + 10);
                    c.fill = fill;
                    c.metric = metric;
                    c.k = k;
                    c.d = d;
                    expectExact(c);
                }
            }
        }
    }
}

TEST_F(IvfDirectSearch, SmallLists) {
    // At both sides of groups of 32, and of the tiles of shared lists.
    for (int length : {0, 1, 31, 32, 33, 255, 256, 257}) {
        for (int d : {9, 40}) {
            KernelCase c = someCase(uint32_t(length) + 3);
            c.lengths = {0, length, length, 0, 1};
            c.nprobe = 5;
            c.k = 40;
            c.d = d;
            expectExact(c);
        }
    }
}

TEST_F(IvfDirectSearch, SmallFilters) {
    for (double selected : {0.0, 0.002, 0.1, 0.9}) {
        for (bool evenWords : {false, true}) {
            for (int d : {12, 40}) {
                KernelCase c = someCase(uint32_t(selected * 1000) + evenWords);
                c.selected = selected;
                c.evenWords = evenWords;
                c.d = d;
                expectExact(c);
            }
        }
    }
}

TEST_F(IvfDirectSearch, ManyNeighbours) {
    // At both sides of the finish and of its room, and of what is there.
    for (ListFill fill :
         {ListFill::Uniform, ListFill::Integers, ListFill::Equal}) {
        for (int k : {90, 127, 128, 129, 512, 1000, 3000}) {
            for (int length : {40, 300, 2500}) {
                for (int d : {6, 40}) {
                    KernelCase c = someCase(uint32_t(k + length));
                    c.fill = fill;
                    c.d = d;
                    c.q = 2;
                    c.k = k;
                    c.lengths = unevenLengths(8, length, c.seed);
                    expectExact(c);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(IvfDirectSearch, ManyProbes) {
    for (int nprobe : {255, 256, 257, 1023, 1024}) {
        for (int d : {10, 40}) {
            KernelCase c = someCase(uint32_t(nprobe));
            c.lengths = unevenLengths(300, 40, c.seed);
            c.nprobe = nprobe;
            c.d = d;
            expectExact(c);
        }
    }
}

TEST_F(IvfDirectSearch, PairsThatOneBlockSorts) {
    // At both sides of the pairs and of the lists that it takes, and with more
    // queries of a list than a tile has.
    for (const auto& [q, nprobe, lists] :
         {std::tuple(64, 64, 90),
          std::tuple(65, 64, 90),
          std::tuple(17, 3, 2),
          std::tuple(6, 40, 4096),
          std::tuple(6, 40, 4097)}) {
        for (ListCoding coding : {ListCoding::Float32, ListCoding::Scalar8}) {
            for (int d : {24, 40}) {
                KernelCase c = someCase(uint32_t(q + lists));
                c.lengths = unevenLengths(lists, 70, c.seed);
                c.q = q;
                c.nprobe = nprobe;
                c.d = d;
                c.coding = coding;
                expectDirect(KernelLists(c));
            }
        }
    }
}

TEST_F(IvfDirectSearch, ManyQueriesInEveryGrid) {
    for (int q : {1, 2, 4, 5, 64, 256}) {
        for (int multiprocessors : {1, 3, 132}) {
            for (int d : {20, 40}) {
                KernelCase c = someCase(uint32_t(q + multiprocessors));
                c.q = q;
                c.d = d;
                c.multiprocessors = multiprocessors;
                const KernelLists lists(c);
                const IvfKnnProblem p = lists.plainProblem();
                for (bool shared : {false, true}) {
                    const IvfKnnPlan plan = planOf(p, false, shared);
                    ASSERT_EQ(bool(plan.direct), q > 1 || !shared);
                    if (plan.direct) {
                        lists.expectExact(lists.run(plan, p));
                    }
                }
            }
        }
    }
}

TEST_F(IvfDirectSearch, FewDimensions) {
    // A lane has a vector, up to 32 dimensions; at both sides of the queries of
    // a tile, and with more of a list than that.
    for (int d : {1, 7, 8, 9, 16, 31, 32, 33}) {
        for (int q : {3, 16, 17, 100}) {
            KernelCase c = someCase(uint32_t(d * 1000 + q));
            c.metric = d % 2 ? Metric::L2 : Metric::InnerProduct;
            c.layout = q % 2 ? ListLayout::Interleaved : ListLayout::Rows;
            c.lengths = unevenLengths(4, 600, c.seed);
            c.fill = d == 8 ? ListFill::NotFinite : ListFill::Uniform;
            c.nprobe = 3;
            c.d = d;
            c.q = q;
            c.selected = q == 17 ? 0.05 : 1;
            expectDirect(KernelLists(c));
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(IvfDirectSearch, MoreQueriesOfFewDimensions) {
    // Where they share lists; those of more dimensions go another way.
    for (int q : {257, 1024, 1025}) {
        for (int d : {5, 33}) {
            KernelCase c = someCase(uint32_t(q + d));
            c.q = q;
            c.d = d;
            c.fill = ListFill::Integers;
            const KernelLists lists(c);
            const IvfKnnProblem p = lists.plainProblem();
            EXPECT_FALSE(planOf(p, false, false).direct);
            const IvfKnnPlan plan = planOf(p, false, true);
            ASSERT_EQ(bool(plan.direct), d == 5 && q <= 1024) << c;
            if (plan.direct) {
                lists.expectExact(lists.run(plan, p));
            }
        }
    }
}

/// k columns and more that are equal to the last one; of ids that differ in
/// some digits.
void expectTies(ListIds kind, int length, int q) {
    KernelCase c = someCase(uint32_t(length + q));
    c.fill = q == 2 ? ListFill::Equal : ListFill::Duplicates;
    c.idKind = kind;
    c.lengths = {length, 0, length / 2};
    c.nprobe = 3;
    c.q = q;
    c.d = 3;
    c.k = 200;
    expectDirect(KernelLists(c));
}

/// More groups of 32 within the limit than the finish has room for.
TEST_F(IvfDirectSearch, SmallManyGroups) {
    for (int d : {3, 40}) {
        for (int k : {1, 128}) {
            KernelCase c = someCase(uint32_t(d + k));
            c.fill = k == 1 ? ListFill::Equal : ListFill::Duplicates;
            c.lengths = {20000, 0, 900};
            c.nprobe = 3;
            c.q = 2;
            c.d = d;
            c.k = k;
            expectDirect(KernelLists(c));
        }
    }
}

TEST_F(IvfDirectSearch, SmallTiesOfManyColumns) {
    expectTies(ListIds::Given64, 300, 2);
}

TEST_F(IvfDirectSearch, TiesOfManyColumns) {
    // More than a block keeps, and fewer.
    for (ListIds kind : {ListIds::Given64, ListIds::Given32, ListIds::Places}) {
        for (int length : {300, 1100, 3000}) {
            for (int q : {2, 70}) {
                expectTies(kind, length, q);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(IvfDirectSearch, MoreThanItTakesGoesAnotherWay) {
    KernelCase c = someCase(1);
    c.lengths = unevenLengths(64, 90, 1);
    const KernelLists lists(c);
    const IvfKnnProblem p = lists.plainProblem();
    EXPECT_TRUE(planIvfKnn(p, kMostBytes).direct);
    EXPECT_FALSE(planIvfKnn(p, 0).direct);
    const auto expectOther = [&](auto change) {
        IvfKnnProblem other = p;
        change(other);
        EXPECT_FALSE(planIvfKnn(other, kMostBytes).direct);
    };
    expectOther([](IvfKnnProblem& o) { o.nprobe = 1025; });
    expectOther([](IvfKnnProblem& o) { o.numQueries = 257; });
    expectOther([](IvfKnnProblem& o) { o.lists.d = 4097; });
    expectOther([](IvfKnnProblem& o) { o.mostVectors = 16 << 20; });
    expectOther([](IvfKnnProblem& o) { o.device.singleToDouble = 64; });
}

} // namespace
} // namespace faiss_bits::test
