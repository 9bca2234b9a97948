/// Direct searches of product codes by tables of entries
/// (kernels/ivf/IvfTableScan.cuh, IvfTurnedCodebook.cuh, IvfBoundedFinish.cu).

#include <algorithm>
#include <string>

#include "tests/ivf/SharedCodeScans.h"

namespace faiss_bits::test {
namespace {

KernelCase caseOf(int partDims, int parts, uint32_t seed) {
    KernelCase c = someCase(seed);
    c.coding = ListCoding::Product;
    c.layout = ListLayout::Rows;
    c.d = partDims * parts;
    c.numParts = parts;
    c.isResidual = true;
    return c;
}

IvfKnnPlan planByTables(
        const IvfKnnProblem& p,
        bool findsLists = false,
        size_t maxBytes = kMostBytes,
        std::optional<bool> byTerms = {}) {
    return planOf(p, findsLists, true, maxBytes, true, byTerms);
}

void expectByTables(const KernelCase& c) {
    const KernelLists lists(c);
    const IvfKnnProblem p = lists.plainProblem();
    for (bool byTerms : {false, true}) {
        const IvfKnnPlan plan = planByTables(p, false, kMostBytes, byTerms);
        ASSERT_TRUE(plan.direct) << c;
        ASSERT_EQ(plan.direct->byTerms, byTerms) << c;
        lists.expectExact(lists.run(plan, p));
        // Whatever the scratch holds.
        lists.expectExact(lists.run(plan, p, 0));
    }
}

SharedCodeScans scansOf(int partDims, int parts) {
    return {[=](uint32_t seed) { return caseOf(partDims, parts, seed); },
            expectByTables};
}

constexpr int kPartDims[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 25, 32, 64};

class IvfTableScan : public GpuTest {};

TEST_F(IvfTableScan, SmallShapes) {
    constexpr struct {
        int dims;
        int parts;
    } kShapes[] = {{12, 8}, {25, 4}, {3, 5}, {1, 16}, {33, 1}};
    for (const auto& shape : kShapes) {
        KernelCase c = caseOf(shape.dims, shape.parts, uint32_t(shape.dims));
        c.lengths = unevenLengths(6, 40, c.seed);
        c.nprobe = 4;
        c.q = 3;
        c.metric = shape.parts == 4 ? Metric::InnerProduct : Metric::L2;
        expectByTables(c);
    }
}

TEST_F(IvfTableScan, SmallInterleaved) {
    for (int bits : {4, 5, 6, 8}) {
        KernelCase c = caseOf(bits == 6 ? 3 : 12, 6, uint32_t(bits));
        c.layout = ListLayout::Interleaved;
        c.partBits = bits;
        c.lengths = unevenLengths(6, 40, c.seed);
        c.nprobe = 4;
        c.q = 9;
        c.metric = bits == 5 ? Metric::InnerProduct : Metric::L2;
        expectByTables(c);
    }
}

TEST_F(IvfTableScan, EveryLengthOfParts) {
    for (int dims : kPartDims) {
        // Of every read of codes.
        for (int parts : {1, 2, 3, 4, 8, 12, 16, 20, 24, 32, 48}) {
            if (dims * parts > 1024) {
                continue;
            }
            for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
                KernelCase c = caseOf(dims, parts, uint32_t(dims + parts));
                c.metric = metric;
                c.isResidual = (dims + parts) % 3 != 0;
                c.lengths64 = c.isResidual;
                c.k = parts % 8 == 0 ? 10 : 100;
                c.lengths = unevenLengths(8, 300, c.seed);
                c.nprobe = 4;
                expectByTables(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(IvfTableScan, EveryNumberOfBits) {
    for (int bits : {4, 5, 6, 7, 8}) {
        for (int dims : {1, 2, 3, 12, 25}) {
            for (int parts : {1, 5, 8, 16}) {
                for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
                    KernelCase c = caseOf(dims, parts, uint32_t(dims + bits));
                    c.layout = ListLayout::Interleaved;
                    c.partBits = bits;
                    c.metric = metric;
                    c.isResidual = parts != 5;
                    c.lengths = unevenLengths(8, 300, c.seed);
                    c.nprobe = 4;
                    expectByTables(c);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(IvfTableScan, HardValues) {
    scansOf(3, 8).hardValues(
            {ListFill::Integers,
             ListFill::Equal,
             ListFill::Duplicates,
             ListFill::Offset,
             ListFill::Tiny,
             ListFill::Small,
             ListFill::Huge,
             ListFill::Mixed,
             ListFill::FarList,
             ListFill::NotFinite},
            {1, 10, 128, 129, 512, 513, 2048});
}

TEST_F(IvfTableScan, SmallLists) {
    // At both sides of groups of 32 and of tiles.
    for (int length : {0, 1, 31, 32, 33, 511, 512, 513, 1023, 1024, 1025}) {
        for (ListLayout layout : {ListLayout::Rows, ListLayout::Interleaved}) {
            KernelCase c = caseOf(12, 3, uint32_t(length) + 3);
            c.layout = layout;
            c.lengths = {0, length, length, 0, 1};
            c.nprobe = 5;
            c.k = 40;
            expectByTables(c);
        }
    }
}

/// More vectors of one code than the finish has room for.
void expectCopies(ListLayout layout, int length) {
    for (int k : {1, 100, 500, 2000}) {
        KernelCase c = caseOf(5, 1, uint32_t(k) + 1);
        c.layout = layout;
        c.partBits = layout == ListLayout::Rows ? 8 : 4;
        c.metric = k == 100 ? Metric::InnerProduct : Metric::L2;
        c.lengths = {length, 40, 700};
        c.k = k;
        c.q = 3;
        c.nprobe = 2;
        expectByTables(c);
    }
}

TEST_F(IvfTableScan, SmallCopies) {
    expectCopies(ListLayout::Interleaved, 12000);
}

TEST_F(IvfTableScan, Copies) {
    expectCopies(ListLayout::Rows, 150000);
    // More than each code has room for, of k up to 2,048, too.
    expectCopies(ListLayout::Interleaved, 90000);
}

TEST_F(IvfTableScan, ManyGroups) {
    scansOf(3, 4).manyGroups({1, 128, 500, 2047});
}

TEST_F(IvfTableScan, QueriesOfAList) {
    // At both sides of a tile's, of the pairs that one block sorts, and of
    // blocks that have a part of a list's tiles.
    for (int q : {2, 7, 8, 9, 16, 17, 64, 65, 256, 257, 1023, 1024}) {
        for (int multiprocessors : {1, 3, 132}) {
            KernelCase c = caseOf(5, 4, uint32_t(q + multiprocessors));
            c.q = q;
            c.lengths = unevenLengths(3, q > 64 ? 300 : 1300, c.seed);
            c.nprobe = q % 64 < 2 && q < 1000 ? 64 : 3;
            c.multiprocessors = multiprocessors;
            expectByTables(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(IvfTableScan, SmallFilters) {
    scansOf(12, 8).filters({ListLayout::Rows, ListLayout::Interleaved});
}

TEST_F(IvfTableScan, TestsOfIds) {
    for (KernelFilter filter : {KernelFilter::IdBits, KernelFilter::IdRange}) {
        for (bool inverted : {false, true}) {
            KernelCase c = caseOf(25, 4, 11);
            c.filter = filter;
            c.inverted = inverted;
            c.selected = 0.3;
            expectByTables(c);
        }
    }
}

TEST_F(IvfTableScan, ListsBeginAnywhereAndIdsAreOfEveryKind) {
    for (int parts : {4, 8, 16}) {
        scansOf(6, parts).places();
    }
}

TEST_F(IvfTableScan, NeighboursAndWhatThereIs) {
    // At both sides of the finish's rooms and of groups.
    scansOf(3, 4).neighbours(
            {1,
             2,
             31,
             32,
             33,
             127,
             128,
             129,
             300,
             511,
             512,
             513,
             1000,
             2047,
             2048});
}

TEST_F(IvfTableScan, QueriesComeInParts) {
    for (int q : {600, 1100, 2500}) {
        for (int k : {5, 200}) {
            KernelCase c = caseOf(3, 8, uint32_t(q));
            c.q = q;
            c.k = k;
            c.nprobe = 2;
            c.lengths = unevenLengths(5, 260, c.seed);
            if (q == 1100) { // bits that all parts read
                c.filter = KernelFilter::IdBits;
                c.selected = 0.3;
            }
            const KernelLists lists(c);
            const IvfKnnProblem p = lists.plainProblem();
            for (bool byTerms : {false, true}) {
                const IvfKnnPlan whole =
                        planByTables(p, false, kMostBytes, byTerms);
                ASSERT_TRUE(whole.direct);
                EXPECT_EQ(whole.direct->rowsAtATime, c.q);
                const size_t most = whole.bytes * 2 / 3;
                const IvfKnnPlan plan = planByTables(p, false, most, byTerms);
                ASSERT_TRUE(plan.direct);
                EXPECT_LT(plan.direct->rowsAtATime, c.q);
                EXPECT_LE(plan.bytes, most);
                const KernelResult found = lists.run(plan, p);
                EXPECT_TRUE(found.sameAs(lists.run(whole, p)));
                lists.expectExact(found);
            }
        }
    }
}

TEST_F(IvfTableScan, FindsListsItself) {
    for (int q : {5, 300, 1500}) {
        KernelCase c = caseOf(12, 8, uint32_t(q));
        c.q = q;
        c.lengths = unevenLengths(33, 60, c.seed);
        const KernelLists lists(c);
        const auto centroids =
                fillRows(c.fill, idx_t(c.lengths.size()), c.d, c.seed + 77);
        const DeviceBuffer<float> onDevice(centroids);
        IvfKnnProblem p = lists.plainProblem();
        p.probes = nullptr;
        p.centroids = onDevice.data();
        p.mostVectors = 0;
        for (int length : c.lengths) {
            p.mostVectors += length;
        }
        const IvfKnnPlan plan = planByTables(p, true);
        ASSERT_TRUE(plan.findsLists()) << c;
        // The lists that the definition gives.
        std::vector<int64_t> probes;
        for (idx_t i = 0; i < c.q; ++i) {
            std::vector<Ranked> ranked;
            for (int l = 0; l < int(c.lengths.size()); ++l) {
                ranked.push_back(
                        {double(canonicalDistance(
                                 Metric::L2,
                                 0,
                                 lists.queries().data() + i * c.d,
                                 centroids.data() + size_t(l) * c.d,
                                 c.d)),
                         l});
            }
            for (const Ranked& one : topK(ranked, c.nprobe, false)) {
                probes.push_back(one.id);
            }
        }
        const DeviceBuffer<int64_t> given(probes);
        IvfKnnProblem all = p;
        all.centroids = nullptr;
        all.probes = given.data();
        const KernelResult expected = lists.run(planOfAll(all), all);
        EXPECT_TRUE(lists.run(plan, p).sameAs(expected)) << c;
        if (q >= 600) { // in parts
            const IvfKnnPlan inParts = planByTables(
                    p, true, plan.bytes * 2 / 3, plan.direct->byTerms);
            ASSERT_TRUE(inParts.findsLists()) << c;
            EXPECT_LT(inParts.direct->rowsAtATime, q);
            EXPECT_TRUE(lists.run(inParts, p).sameAs(expected)) << c;
        }
    }
}

TEST_F(IvfTableScan, LargeSearchesAreExact) {
    for (int dims : {12, 25}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            KernelCase c = caseOf(dims, dims == 12 ? 24 : 16, 5);
            c.metric = metric;
            c.lengths = unevenLengths(32, 1100, c.seed);
            c.q = 40;
            c.nprobe = 8;
            c.k = 100;
            expectByTables(c);
        }
    }
}

TEST_F(IvfTableScan, WhatItDoesNotTakeGoesAnotherWay) {
    const KernelCase c = caseOf(12, 8, 1);
    const KernelLists lists(c);
    const IvfKnnProblem p = lists.plainProblem();
    EXPECT_TRUE(planByTables(p).direct);
    const auto expectOther = [&](auto change) {
        IvfKnnProblem other = p;
        change(other);
        EXPECT_FALSE(planByTables(other).direct);
    };
    expectOther([](IvfKnnProblem& o) { o.k = 2049; });
    expectOther([](IvfKnnProblem& o) { o.numQueries = 1; });
    expectOther([](IvfKnnProblem& o) { o.lists.decoding.numParts = 96; });
    expectOther([](IvfKnnProblem& o) { o.lists.d = 1032; });
    expectOther([](IvfKnnProblem& o) { o.device.blockSharedBytes = 32 << 10; });
    expectOther([](IvfKnnProblem& o) { o.lists.coding = ListCoding::Scalar8; });
    EXPECT_FALSE(planOf(p, false, false, kMostBytes, true).direct);
}

} // namespace
} // namespace faiss_bits::test
