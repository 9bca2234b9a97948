/// Direct searches of queries by themselves, by estimates of fours of vectors
/// (kernels/ivf/IvfFloors.h).

#include "kernels/ivf/IvfFloors.h"
#include "tests/ivf/SharedCodeScans.h"

namespace faiss_bits::test {
namespace {

KernelCase caseOf(ListCoding coding, int d, uint32_t seed) {
    KernelCase c = someCase(seed);
    c.coding = coding;
    c.layout = ListLayout::Interleaved;
    c.d = d;
    c.isResidual = coding != ListCoding::Float32;
    return c;
}

void expectAlone(const KernelCase& c) {
    const KernelLists lists(c);
    const IvfKnnProblem p = lists.plainProblem();
    ASSERT_TRUE(hasIvfCodeFloors(p.lists, c.q, c.k)) << c;
    const IvfKnnPlan plan = planOf(p, false, false);
    ASSERT_TRUE(plan.direct) << c;
    lists.expectExact(lists.run(plan, p));
    // Whatever the scratch holds.
    lists.expectExact(lists.run(plan, p, 0));
}

class IvfFloors : public GpuTest,
                  public testing::WithParamInterface<ListCoding> {
   protected:
    SharedCodeScans scansOf(int d) const {
        const ListCoding coding = GetParam();
        return {[=](uint32_t seed) { return caseOf(coding, d, seed); },
                [](KernelCase c) {
                    c.isResidual &= c.coding != ListCoding::Float32;
                    expectAlone(c);
                }};
    }
};

TEST_P(IvfFloors, EveryDimension) {
    for (int d : {36, 40, 60, 64, 68, 96, 100, 124, 128}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            KernelCase c = caseOf(GetParam(), d, uint32_t(d));
            c.metric = metric;
            c.k = d % 8 == 0 ? 10 : 100;
            c.lengths = unevenLengths(12, 700, c.seed);
            expectAlone(c);
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
        expectAlone(c);
    }
}

TEST_P(IvfFloors, Queries) {
    for (int q : {1, 2, 15, 33, 63}) {
        for (int multiprocessors : {1, 132}) {
            KernelCase c =
                    caseOf(GetParam(), 64, uint32_t(q + multiprocessors));
            c.q = q;
            c.lengths = unevenLengths(3, 300, c.seed);
            c.nprobe = q % 2 == 1 ? 70 : 3;
            c.multiprocessors = multiprocessors;
            expectAlone(c);
        }
    }
}

TEST_P(IvfFloors, SmallFilters) {
    scansOf(72).filters({ListLayout::Interleaved});
}

TEST_P(IvfFloors, ListsBeginAnywhereAndIdsAreOfEveryKind) {
    SharedCodeScans scans = scansOf(128);
    const auto make = scans.make;
    scans.expect = [=](KernelCase c) {
        // Numbers of float32 begin on four bytes.
        if (c.coding == ListCoding::Float32) {
            c.listShift = c.listShift / 4 * 4;
        }
        expectAlone(c);
    };
    scans.places();
}

TEST_P(IvfFloors, NeighboursAndWhatThereIs) {
    // At both sides of the finish's rooms.
    scansOf(64).neighbours({1, 2, 31, 32, 33, 100, 127, 128});
}

INSTANTIATE_TEST_SUITE_P(
        All,
        IvfFloors,
        testing::Values(ListCoding::Float32, ListCoding::Scalar8));

} // namespace
} // namespace faiss_bits::test
