/// Direct searches of product codes by queries by themselves, with the codebook
/// in shared memory (kernels/ivf/IvfBookScan.cuh, IvfBookTables.cuh).

#include "kernels/ivf/IvfDirectScratch.h"
#include "tests/ivf/SharedCodeScans.h"

namespace faiss_bits::test {
namespace {

struct Shape {
    int dims;
    int parts;
};

/// Of every size of a part; whole steps, parts of one, and more than one.
constexpr Shape kShapes[] = {
        {8, 4},    {8, 1},   {16, 1},   {24, 3},   {32, 16},  {40, 20},
        {56, 14},  {64, 32}, {64, 16},  {72, 36},  {72, 18},  {96, 48},
        {96, 24},  {96, 6},  {104, 52}, {120, 15}, {128, 64}, {128, 32},
        {128, 16}, {128, 8}, {144, 72}, {192, 48}, {192, 96}};

KernelCase caseOf(const Shape& shape, uint32_t seed) {
    KernelCase c = someCase(seed);
    c.coding = ListCoding::Product;
    c.layout = ListLayout::Rows;
    c.d = shape.dims;
    c.numParts = shape.parts;
    c.isResidual = true;
    return c;
}

void expectOne(
        const KernelLists& lists,
        const IvfKnnProblem& p,
        bool byTables) {
    ASSERT_TRUE(hasIvfBookScan(p.lists, p.numQueries, p.nprobe, p.device));
    const IvfKnnPlan plan = planOf(p, false, false, kMostBytes, byTables);
    ASSERT_TRUE(plan.direct);
    ASSERT_EQ(hasCodeFloors(*plan.direct, p), byTables);
    lists.expectExact(lists.run(plan, p));
    // Whatever the scratch holds.
    lists.expectExact(lists.run(plan, p, 0));
}

/// Canonical distances; and up to some neighbours by tables.
void expectAlone(const KernelCase& c) {
    SCOPED_TRACE(testing::Message() << c);
    const KernelLists lists(c);
    const IvfKnnProblem p = lists.plainProblem();
    expectOne(lists, p, false);
    if (hasIvfBookTables(p.lists, p.numQueries, p.nprobe, int(p.k), p.device)) {
        expectOne(lists, p, true);
    }
}

SharedCodeScans scansOf(const Shape& shape) {
    return {[=](uint32_t seed) { return caseOf(shape, seed); }, expectAlone};
}

class IvfBookScan : public GpuTest {};

TEST_F(IvfBookScan, EveryShape) {
    for (const Shape& shape : kShapes) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (bool isResidual : {false, true}) {
                KernelCase c =
                        caseOf(shape, uint32_t(shape.dims + shape.parts));
                c.metric = metric;
                c.isResidual = isResidual;
                c.lengths64 = isResidual;
                c.k = isResidual ? 10 : 200;
                c.lengths = unevenLengths(12, 700, c.seed);
                expectAlone(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

void hardValues(const Shape& shape) {
    scansOf(shape).hardValues(
            {ListFill::Integers,
             ListFill::Equal,
             ListFill::Offset,
             ListFill::Small,
             ListFill::Huge,
             ListFill::Mixed,
             ListFill::NotFinite},
            {1, 10, 32, 128});
}

// Parts of so many components.
TEST_F(IvfBookScan, HardValuesOf2) {
    hardValues({32, 16});
    hardValues({64, 32});
}
TEST_F(IvfBookScan, HardValuesOf4) {
    hardValues({64, 16});
}
TEST_F(IvfBookScan, HardValuesOf8) {
    hardValues({64, 8});
}
TEST_F(IvfBookScan, HardValuesOf16) {
    hardValues({64, 4});
}

TEST_F(IvfBookScan, Queries) {
    for (int q : {1, 2, 4, 7, 31, 32, 33, 67, 128}) {
        for (int multiprocessors : {1, 5, 132}) {
            KernelCase c = caseOf({64, 16}, uint32_t(q + multiprocessors));
            c.q = q;
            c.lengths = unevenLengths(5, 900, c.seed);
            c.multiprocessors = multiprocessors;
            expectAlone(c);
        }
    }
}

TEST_F(IvfBookScan, SmallLists) {
    for (int length : {0, 1, 3, 4, 31, 32, 33, 257}) {
        KernelCase c = caseOf({128, 64}, uint32_t(length) + 3);
        c.lengths = {0, length, length, 0, 1};
        c.nprobe = 5;
        c.k = 30;
        expectAlone(c);
    }
}

/// Of tables in steps of two lists, or of one: whole steps and others, with
/// empty lists between, of one block.
TEST_F(IvfBookScan, ListsOfABlock) {
    for (const Shape& shape : {Shape{128, 32}, Shape{128, 64}}) {
        for (int count = 1; count <= 5; ++count) {
            KernelCase c = caseOf(shape, uint32_t(count) + 50);
            c.lengths.clear();
            for (int list = 0; list < count; ++list) {
                c.lengths.insert(c.lengths.end(), {0, 500 + 33 * list});
            }
            c.nprobe = int(c.lengths.size());
            c.metric = count % 2 == 0 ? Metric::InnerProduct : Metric::L2;
            c.q = 2;
            c.multiprocessors = 1;
            expectAlone(c);
        }
    }
}

TEST_F(IvfBookScan, NeighboursAndWhatThereIs) {
    scansOf({64, 16}).neighbours({1, 31, 32, 33, 128, 129});
}

TEST_F(IvfBookScan, ManyGroups) {
    scansOf({64, 16}).manyGroups({1, 10, 128});
}

TEST_F(IvfBookScan, LongListsOfManyBlocks) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        KernelCase c = caseOf({128, 32}, 9);
        c.metric = metric;
        c.lengths = unevenLengths(40, 1500, c.seed);
        c.q = 16;
        c.nprobe = 12;
        c.k = 100;
        expectAlone(c);
    }
}

TEST_F(IvfBookScan, SmallFilters) {
    scansOf({96, 24}).filters({ListLayout::Rows});
    scansOf({128, 32}).filters({ListLayout::Rows});
    scansOf({192, 96}).filters({ListLayout::Rows});
}

TEST_F(IvfBookScan, ListsBeginAnywhereAndIdsAreOfEveryKind) {
    scansOf({128, 64}).places();
    scansOf({128, 32}).places();
    scansOf({144, 72}).places();
}

} // namespace
} // namespace faiss_bits::test
