/// Direct searches by lower bounds or estimates of fours of vectors
/// (kernels/ivf/IvfFloors.h), of queries that share lists and by themselves.

#include "kernels/ivf/IvfFloors.h"
#include "tests/ivf/SharedCodeScans.h"

namespace faiss_bits::test {
namespace {

struct Kind {
    ListCoding coding;
    ListLayout layout;
};

constexpr Kind kKinds[] = {
        {ListCoding::Float32, ListLayout::Interleaved},
        {ListCoding::Float32, ListLayout::Rows},
        {ListCoding::Scalar8, ListLayout::Interleaved},
        {ListCoding::Scalar8, ListLayout::Rows}};

KernelCase caseOf(const Kind& kind, int d, uint32_t seed) {
    KernelCase c = someCase(seed);
    c.coding = kind.coding;
    c.layout = kind.layout;
    c.d = d;
    c.isResidual = kind.coding != ListCoding::Float32;
    return c;
}

void expectShared(const KernelCase& c) {
    ASSERT_TRUE(hasIvfFloors(
            [&] {
                IvfLists lists;
                lists.coding = c.coding;
                lists.d = c.d;
                return lists;
            }(),
            c.q,
            c.k))
            << c;
    const KernelLists lists(c);
    const IvfKnnProblem p = lists.plainProblem();
    const IvfKnnPlan plan = planOf(p, false, true);
    ASSERT_TRUE(plan.direct) << c;
    lists.expectExact(lists.run(plan, p));
    // Whatever the scratch holds.
    lists.expectExact(lists.run(plan, p, 0));
    if (hasIvfCodeFloors(p.lists, c.q, c.k)) {
        const IvfKnnPlan alone = planOf(p, false, false);
        ASSERT_TRUE(alone.direct) << c;
        lists.expectExact(lists.run(alone, p));
        lists.expectExact(lists.run(alone, p, 0));
    }
}

class IvfFloors : public GpuTest, public testing::WithParamInterface<Kind> {
   protected:
    SharedCodeScans scansOf(int d) const {
        const Kind kind = GetParam();
        return {[=](uint32_t seed) {
                    KernelCase c = caseOf(kind, d, seed);
                    return c;
                },
                [](KernelCase c) {
                    c.isResidual &= c.coding != ListCoding::Float32;
                    expectShared(c);
                }};
    }
};

TEST_P(IvfFloors, EveryDimension) {
    for (int d : {33, 40, 63, 64, 65, 96, 100, 127, 128}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            KernelCase c = caseOf(GetParam(), d, uint32_t(d));
            c.metric = metric;
            c.k = d % 2 == 0 ? 10 : 100;
            c.lengths = unevenLengths(12, 700, c.seed);
            expectShared(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_P(IvfFloors, HardValues) {
    scansOf(48).hardValues(
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

TEST_P(IvfFloors, SmallLists) {
    for (int length : {0, 1, 3, 4, 5, 31, 32, 33, 127, 128, 129, 257}) {
        KernelCase c = caseOf(GetParam(), 64, uint32_t(length) + 3);
        c.lengths = {0, length, length, 0, 1};
        c.nprobe = 5;
        c.k = 40;
        expectShared(c);
    }
}

TEST_P(IvfFloors, QueriesOfAList) {
    for (int q : {2, 15, 16, 17, 33, 63}) {
        for (int multiprocessors : {1, 132}) {
            KernelCase c =
                    caseOf(GetParam(), 64, uint32_t(q + multiprocessors));
            c.q = q;
            c.lengths = unevenLengths(3, 300, c.seed);
            c.nprobe = q % 2 == 1 ? 70 : 3;
            c.multiprocessors = multiprocessors;
            expectShared(c);
        }
    }
}

TEST_P(IvfFloors, SmallFilters) {
    scansOf(72).filters({GetParam().layout});
}

TEST_P(IvfFloors, ListsBeginAnywhereAndIdsAreOfEveryKind) {
    SharedCodeScans scans = scansOf(128);
    const auto make = scans.make;
    scans.expect = [=](KernelCase c) {
        // Numbers of float32 begin on four bytes.
        if (c.coding == ListCoding::Float32) {
            c.listShift = c.listShift / 4 * 4;
        }
        expectShared(c);
    };
    scans.places();
}

TEST_P(IvfFloors, NeighboursAndWhatThereIs) {
    // At both sides of the finish's rooms.
    scansOf(64).neighbours({1, 2, 31, 32, 33, 100, 127, 128});
}

INSTANTIATE_TEST_SUITE_P(All, IvfFloors, testing::ValuesIn(kKinds));

} // namespace
} // namespace faiss_bits::test
