/// Pairs of queries and lists in the order of the lists, where so many meet in
/// few lists that blocks count them (kernels/ivf/IvfPairs.cu).

#include <tuple>

#include "tests/ivf/DirectHarness.h"

namespace faiss_bits::test {
namespace {

class IvfPairs : public GpuTest {
   protected:
    /// By tiles, which many queries of a list take.
    static void expectTiles(const KernelCase& c) {
        const KernelLists lists(c);
        const IvfKnnProblem p = lists.plainProblem();
        const IvfKnnPlan plan = planOfAll(p);
        ASSERT_TRUE(plan.listMajor) << plan.toString();
        ASSERT_EQ(plan.rowsAtATime, c.q); // all pairs at once
        lists.expectExact(lists.run(plan, p));
        lists.expectExact(lists.run(plan, p, 0));
    }
};

TEST_F(IvfPairs, AtBothSidesOfManyPairs) {
    // 2^17 of them; and as many for a list as blocks count, which lists of
    // 4,096 have that are there, or not.
    for (const auto& [q, nprobe, lists] :
         {std::tuple(6553, 20, 40),
          std::tuple(6554, 20, 40),
          std::tuple(40000, 5, 3),
          std::tuple(8191, 64, 4096),
          std::tuple(8193, 64, 4096),
          std::tuple(8200, 64, 4097)}) {
        KernelCase c = someCase(uint32_t(q + lists));
        c.lengths = unevenLengths(lists, lists > 1000 ? 4 : 30, c.seed);
        c.q = q;
        c.nprobe = nprobe;
        c.k = 3;
        c.d = 3;
        expectTiles(c);
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST_F(IvfPairs, AllInOneList) {
    KernelCase c = someCase(9);
    c.lengths = {70};
    c.q = 70000;
    c.nprobe = 2;
    c.d = 2;
    c.fill = ListFill::Integers;
    expectTiles(c);
}

} // namespace
} // namespace faiss_bits::test
