/// Direct searches of queries by themselves, by estimates in float32
/// (kernels/ivf/IvfFloors.h).

#include "kernels/ivf/IvfFloors.h"
#include "tests/ivf/SharedCodeScans.h"

namespace faiss_bits::test {
namespace {

KernelCase caseOf(int d, uint32_t seed) {
    KernelCase c = someCase(seed);
    c.coding = ListCoding::Scalar8;
    c.layout = ListLayout::Interleaved;
    c.d = d;
    c.isResidual = true;
    return c;
}

void expectAlone(const KernelCase& c) {
    const KernelLists lists(c);
    IvfKnnProblem p = lists.plainProblem();
    // More vectors than there are, so that it pays for any k.
    p.mostVectors += (idx_t(1) << 21) / p.numQueries;
    ASSERT_TRUE(hasIvfCodeFloors(p.lists, c.q, p.mostVectors, c.k)) << c;
    const IvfKnnPlan plan = planOf(p, false, false);
    ASSERT_TRUE(plan.direct) << c;
    lists.expectExact(lists.run(plan, p));
    // Whatever the scratch holds.
    lists.expectExact(lists.run(plan, p, 0));
}

SharedCodeScans scansOf(int d) {
    return {[=](uint32_t seed) { return caseOf(d, seed); }, expectAlone};
}

class IvfFloors : public GpuTest {};

TEST_F(IvfFloors, EveryDimension) {
    for (int d : {4, 8, 20, 36, 60, 64, 68, 100, 128}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            KernelCase c = caseOf(d, uint32_t(d));
            c.metric = metric;
            c.k = d % 8 == 0 ? 10 : 32;
            c.lengths = unevenLengths(12, 700, c.seed);
            expectAlone(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(IvfFloors, HardValues) {
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
            {1, 10, 32, 128});
}

TEST_F(IvfFloors, SmallLists) {
    for (int length : {0, 1, 3, 4, 5, 31, 32, 33, 127, 128, 129, 257}) {
        KernelCase c = caseOf(64, uint32_t(length) + 3);
        c.lengths = {0, length, length, 0, 1};
        c.nprobe = 5;
        c.k = 25;
        expectAlone(c);
    }
}

TEST_F(IvfFloors, Queries) {
    for (int q : {1, 2, 15, 33, 63, 64, 128}) {
        for (int multiprocessors : {1, 132}) {
            KernelCase c = caseOf(64, uint32_t(q + multiprocessors));
            c.q = q;
            c.lengths = unevenLengths(3, 300, c.seed);
            c.nprobe = q % 2 == 1 ? 70 : 3;
            c.multiprocessors = multiprocessors;
            expectAlone(c);
        }
    }
}

TEST_F(IvfFloors, SmallFilters) {
    scansOf(72).filters({ListLayout::Interleaved});
}

TEST_F(IvfFloors, ListsBeginAnywhereAndIdsAreOfEveryKind) {
    scansOf(128).places();
}

TEST_F(IvfFloors, NeighboursAndWhatThereIs) {
    SharedCodeScans scans = scansOf(64);
    scans.expect = [](KernelCase c) {
        c.q = 4;
        expectAlone(c);
    };
    scans.neighbours({1, 2, 15, 16, 31, 32, 33, 96, 97, 127, 128});
}

TEST_F(IvfFloors, ManyGroups) {
    scansOf(32).manyGroups({1, 10, 128});
}

/// Groups of 32 columns that are fewer than k, as many, and more: of the first
/// two all estimates set the limit.
TEST_F(IvfFloors, FewGroupsAndManyNeighbours) {
    for (int groups : {1, 3, 99, 100, 101, 130, 200}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            KernelCase c = caseOf(32, uint32_t(groups));
            c.metric = metric;
            c.q = 4;
            c.nprobe = 1;
            c.k = 100;
            c.lengths = {groups * 32, groups * 32 - 31};
            expectAlone(c);
        }
    }
}

} // namespace
} // namespace faiss_bits::test
