/// Direct searches of product codes that queries share, by estimates
/// (kernels/ivf/IvfProductScan.cuh, IvfBoundedFinish.cu).

#include <string>

#include "tests/ivf/SharedCodeScans.h"

namespace faiss_bits::test {
namespace {

struct Shape {
    int dims;
    int parts;
};

/// Of every read of codes and every size of a part; some of more than one read.
constexpr Shape kShapes[] = {
        {16, 8},
        {32, 8},
        {64, 8},
        {128, 8},
        {48, 24},
        {96, 24},
        {32, 16},
        {64, 16},
        {128, 16},
        {256, 16},
        {80, 40},
        {64, 32},
        {128, 32},
        {256, 32},
        {192, 96},
        {128, 64},
        {256, 64},
        {256, 128}};

KernelCase caseOf(const Shape& shape, uint32_t seed) {
    KernelCase c = someCase(seed);
    c.coding = ListCoding::Product;
    c.layout = ListLayout::Rows;
    c.d = shape.dims;
    c.numParts = shape.parts;
    c.isResidual = true;
    return c;
}

void expectShared(const KernelCase& c) {
    const KernelLists lists(c);
    const IvfKnnProblem p = lists.plainProblem();
    const IvfKnnPlan plan = planOf(p, false, true);
    ASSERT_TRUE(plan.direct) << c;
    lists.expectExact(lists.run(plan, p));
    // Whatever the scratch holds.
    lists.expectExact(lists.run(plan, p, 0));
}

SharedCodeScans scansOf(const Shape& shape) {
    return {[=](uint32_t seed) { return caseOf(shape, seed); }, expectShared};
}

class IvfProductScan : public GpuTest {};

TEST_F(IvfProductScan, SmallShapes) {
    for (const Shape& shape : {Shape{16, 8}, Shape{64, 32}, Shape{64, 8}}) {
        KernelCase c = caseOf(shape, uint32_t(shape.dims));
        c.lengths = unevenLengths(6, 40, c.seed);
        c.nprobe = 4;
        c.q = 3;
        c.metric = shape.parts == 32 ? Metric::InnerProduct : Metric::L2;
        expectShared(c);
    }
}

TEST_F(IvfProductScan, EveryShape) {
    for (const Shape& shape : kShapes) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (bool isResidual : {false, true}) {
                KernelCase c =
                        caseOf(shape, uint32_t(shape.dims + shape.parts));
                c.metric = metric;
                c.isResidual = isResidual;
                c.lengths64 = isResidual;
                c.k = isResidual ? 10 : 100;
                c.lengths = unevenLengths(12, 700, c.seed);
                expectShared(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(IvfProductScan, HardValues) {
    scansOf({32, 16}).hardValues(
            {ListFill::Integers,
             ListFill::Equal,
             ListFill::Duplicates,
             ListFill::Offset,
             ListFill::Tiny,
             ListFill::Small,
             ListFill::Huge,
             ListFill::Mixed,
             ListFill::NotFinite},
            {1, 10, 128});
}

TEST_F(IvfProductScan, SmallLists) {
    // At both sides of what a step has, of groups of 32 and of tiles.
    for (int length :
         {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 255, 256, 257, 513}) {
        KernelCase c = caseOf({32, 16}, uint32_t(length) + 3);
        c.lengths = {0, length, length, 0, 1};
        c.nprobe = 5;
        c.k = 40;
        expectShared(c);
    }
}

TEST_F(IvfProductScan, QueriesOfAList) {
    // At both sides of a tile's, and of the pairs that one block sorts.
    for (int q : {2, 7, 8, 9, 16, 17, 64, 65, 256}) {
        for (int multiprocessors : {1, 3, 132}) {
            KernelCase c = caseOf({64, 32}, uint32_t(q + multiprocessors));
            c.q = q;
            c.lengths = unevenLengths(3, 300, c.seed);
            c.nprobe = q % 64 < 2 ? 64 : 3;
            c.multiprocessors = multiprocessors;
            expectShared(c);
        }
    }
}

/// More than finish at once; from some number on in smaller blocks.
TEST_F(IvfProductScan, ManyQueries) {
    for (idx_t q : {257, 1023, 1024, 4096}) {
        KernelCase c = caseOf({32, 16}, uint32_t(q));
        c.q = q;
        c.lengths = unevenLengths(20, 100, c.seed);
        c.nprobe = 3;
        expectShared(c);
    }
}

TEST_F(IvfProductScan, SmallFilters) {
    scansOf({48, 24}).filters({ListLayout::Rows});
}

TEST_F(IvfProductScan, ListsBeginAnywhereAndIdsAreOfEveryKind) {
    scansOf({128, 64}).places();
}

TEST_F(IvfProductScan, NeighboursAndWhatThereIs) {
    // At both sides of the finish's room and of groups.
    scansOf({16, 8}).neighbours({1, 2, 31, 32, 33, 100, 127, 128});
}

TEST_F(IvfProductScan, LargeSearchesAreExact) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        KernelCase c = caseOf({128, 64}, 5);
        c.metric = metric;
        c.lengths = unevenLengths(64, 1100, c.seed);
        c.q = 40;
        c.nprobe = 16;
        c.k = 100;
        expectShared(c);
    }
}

TEST_F(IvfProductScan, WhatItDoesNotTakeGoesAnotherWay) {
    KernelCase c = caseOf({128, 64}, 1);
    const KernelLists lists(c);
    const IvfKnnProblem p = lists.plainProblem();
    EXPECT_TRUE(planOf(p, false, true).direct);
    const auto expectOther = [&](auto change) {
        IvfKnnProblem other = p;
        change(other);
        EXPECT_FALSE(planOf(other, false, true).direct);
    };
    expectOther([](IvfKnnProblem& o) { o.k = 129; });
    expectOther([](IvfKnnProblem& o) { o.numQueries = 1; });
    expectOther([](IvfKnnProblem& o) { o.lists.decoding.numParts = 4; });
    expectOther([](IvfKnnProblem& o) { o.lists.decoding.partBits = 6; });
    expectOther(
            [](IvfKnnProblem& o) { o.lists.layout = ListLayout::Interleaved; });
    expectOther([](IvfKnnProblem& o) { o.lists.d = 512; });
    expectOther([](IvfKnnProblem& o) { o.lists.decoding.codebook += 1; });
    expectOther([](IvfKnnProblem& o) { o.device.sharedBytes = 96 << 10; });
}

} // namespace
} // namespace faiss_bits::test
