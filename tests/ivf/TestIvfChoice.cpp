/// Candidates that a block chooses among the bounds of a row in registers, and
/// limits that it finds so (kernels/ivf/IvfChoice.h): at both sides of what
/// threads hold, of k and of what a warp sorts; equal bounds; and near vectors
/// that are all one thread's.

#include "kernels/ivf/IvfChoice.h"
#include "tests/ivf/IvfKernelHarness.h"

namespace faiss_bits::test {
namespace {

class IvfChoice : public GpuTest {
   protected:
    /// Eight lists of so many vectors, all of them probed, or some twice.
    static KernelCase caseOf(int length, int k) {
        KernelCase c;
        c.d = 16;
        c.lengths.assign(8, length);
        c.nprobe = 8;
        c.q = 12;
        c.k = k;
        return c;
    }

    /// Whose plan has bounds of all lists.
    static IvfKnnProblem ofAll(const KernelLists& lists) {
        return lists.problem(EstimateMode::All);
    }

    static IvfKnnPlan planOf(const KernelLists& lists) {
        const IvfKnnPlan plan = planIvfKnn(ofAll(lists), lists.kMaxBytes);
        EXPECT_TRUE(plan.byEstimates() && plan.room == 0) << plan.toString();
        return plan;
    }

    static bool chooses(const KernelLists& lists) {
        return choosesIvf(planOf(lists), ofAll(lists));
    }

    static void expectExact(const KernelLists& lists) {
        lists.expectExact(lists.run(planOf(lists), ofAll(lists)));
    }

    /// By limits of near lists, in rows of so many columns, or as many as they
    /// need. False if they need more.
    static bool expectExactByLimits(const KernelLists& lists, idx_t columns) {
        const IvfKnnProblem p = lists.problem(EstimateMode::Near);
        IvfKnnPlan plan = planIvfKnn(p, lists.kMaxBytes);
        EXPECT_GT(plan.room, 0) << plan.toString();
        // The plan is of lists that are longer, so that it has limits at all.
        const int longest = *std::max_element(
                lists.c.lengths.begin(), lists.c.lengths.end());
        const idx_t most = plan.nearProbes * idx_t(longest + kIvfColumnStep) /
                plan.boundVectors;
        const idx_t needed = (most / kIvfRowStep + 1) * kIvfRowStep;
        if (columns > 0 && columns < needed) {
            return false;
        }
        plan.stride = columns > 0 ? columns : needed;
        EXPECT_TRUE(findsIvfLimits(plan, p)) << plan.toString();
        EXPECT_TRUE(choosesIvf(plan, p)) << plan.toString();
        lists.expectExact(lists.run(plan, p));
        return true;
    }
};

TEST_F(IvfChoice, SmallRowsAroundWhatThreadsHold) {
    for (int columns : {1024, 2048, 3072, 5120, int(kIvfMostChoiceColumns)}) {
        for (int more : {-1, 0, 1}) {
            for (ListFill fill : {ListFill::Uniform, ListFill::Integers}) {
                KernelCase c = caseOf((columns - 24) / 8 + more, 10);
                c.fill = fill;
                const KernelLists lists(c);
                const IvfKnnPlan plan = planOf(lists);
                EXPECT_EQ(plan.stride, columns + 8 * more) << plan.toString();
                EXPECT_EQ(chooses(lists), plan.stride <= kIvfMostChoiceColumns);
                expectExact(lists);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(IvfChoice, SmallLimitsAroundWhatThreadsHold) {
    int searched = 0;
    for (int length : {33, 120, 300, 1200}) {
        for (ListFill fill :
             {ListFill::Uniform, ListFill::Integers, ListFill::NotFinite}) {
            for (double selected : {1.0, 0.4}) {
                KernelCase c = caseOf(length, 3);
                c.fill = fill;
                c.selected = selected;
                const KernelLists lists(c);
                for (idx_t columns :
                     {0,
                      1024,
                      1032,
                      2048,
                      2056,
                      3072,
                      3080,
                      5120,
                      5128,
                      10240}) {
                    searched += expectExactByLimits(lists, columns);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
    EXPECT_GT(searched, 100);
}

TEST_F(IvfChoice, SmallKAroundWhatAWarpSorts) {
    // Candidates: k + 16 + k / 2, around 32, 64, 128; and the greatest k.
    for (int k : {1, 2, 10, 11, 12, 32, 33, 74, 75, 76, 127, 128, 129}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            KernelCase c = caseOf(300, k);
            c.metric = metric;
            c.d = k % 2 ? 20 : 33;
            const KernelLists lists(c);
            EXPECT_EQ(chooses(lists), k <= kIvfMostChoiceK) << c;
            expectExact(lists);
            if (k <= 76) { // near lists have enough for so many
                expectExactByLimits(lists, 0);
            }
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(IvfChoice, SmallEqualBoundsAndThoseThatAreNone) {
    for (ListFill fill :
         {ListFill::Equal,
          ListFill::Duplicates,
          ListFill::Integers,
          ListFill::Offset,
          ListFill::Mixed,
          ListFill::Huge,
          ListFill::Small,
          ListFill::NotFinite}) {
        for (int k : {1, 30, 100}) {
            for (double selected : {1.0, 0.3, 0.01}) {
                KernelCase c = caseOf(280, k);
                c.fill = fill;
                c.selected = selected;
                c.d = 12;
                const KernelLists lists(c);
                ASSERT_TRUE(chooses(lists)) << c;
                expectExact(lists);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// How many queries are searched again where bounds are all equal: those that
/// reach more vectors than there is room for.
TEST_F(IvfChoice, SmallEqualBoundsBeyondTheRoomAreLost) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int k : {1, 10, 128}) {
            for (double selected : {1.0, 0.03, 0.01, 0.002}) {
                KernelCase c = caseOf(280, k);
                c.fill = ListFill::Equal;
                c.metric = metric;
                c.selected = selected;
                c.q = 40;
                const KernelLists lists(c);
                const IvfKnnPlan plan = planOf(lists);
                ASSERT_TRUE(chooses(lists)) << c;
                const KernelResult found = lists.run(plan, ofAll(lists));
                lists.expectExact(found);
                idx_t most = 0;
                for (idx_t row = 0; row < c.q; ++row) {
                    const float* query = lists.queries().data() + row * c.d;
                    most += int(lists.reachable(row, query).size()) >
                            plan.candidates;
                }
                EXPECT_EQ(found.lost, most) << c;
                if (selected == 1) {
                    EXPECT_EQ(most, c.q) << c;
                } else if (selected < 0.01) {
                    EXPECT_EQ(most, 0) << c;
                }
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// Candidates that have room are never cut, and nothing is searched again.
TEST_F(IvfChoice, SmallNothingIsLostWhereBoundsAreTight) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int k : {1, 10, 60}) {
            KernelCase c = caseOf(500, k);
            c.d = 64;
            c.metric = metric;
            const KernelLists lists(c);
            ASSERT_TRUE(chooses(lists)) << c;
            const KernelResult found = lists.run(planOf(lists), ofAll(lists));
            lists.expectExact(found);
            EXPECT_EQ(found.lost, 0) << c;
            EXPECT_GE(found.scored, c.q * k) << c;
        }
    }
}

/// The vectors of one list have wide bounds, so that a row's width lets all
/// others pass: these are cut, and what is cut is known to be farther.
TEST_F(IvfChoice, SmallWhatIsCutIsProvedToBeFarther) {
    for (int k : {1, 10, 50}) {
        KernelCase c = caseOf(300, k);
        c.fill = ListFill::FarList;
        c.q = 40;
        const KernelLists lists(c);
        const IvfKnnPlan plan = planOf(lists);
        ASSERT_TRUE(chooses(lists)) << c;
        const KernelResult found = lists.run(plan, ofAll(lists));
        lists.expectExact(found);
        EXPECT_EQ(found.lost, 0) << c;
        idx_t cut = 0; // rows
        for (idx_t row = 0; row < c.q; ++row) {
            const float* query = lists.queries().data() + row * c.d;
            const auto all = lists.reachable(row, query);
            const auto isFar = [](const Ranked& r) { return r.key > 1e9; };
            const idx_t far = std::count_if(all.begin(), all.end(), isFar);
            cut += far > 0 && idx_t(all.size()) - far > plan.candidates;
        }
        EXPECT_GT(cut, c.q / 4) << c;
        // As many as there is room for, but where the bounds there are equal.
        EXPECT_GE(found.scored, cut * (plan.candidates - 2)) << c;
    }
}

/// The least keys of threads then say little of the others: four bounds side by
/// side of every 512 are one thread's.
TEST_F(IvfChoice, SmallNearVectorsAreAllOfOneThread) {
    for (int length : {256, 512, 1024}) {
        for (int k : {1, 2, 3, 20, 32}) {
            KernelCase c = caseOf(length, k);
            c.fill = ListFill::Strided;
            const KernelLists lists(c);
            ASSERT_TRUE(chooses(lists));
            expectExact(lists);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(IvfChoice, SmallCodings) {
    for (ListCoding coding :
         {ListCoding::Float16,
          ListCoding::Scalar8,
          ListCoding::Scalar4,
          ListCoding::Product}) {
        for (int k : {7, 50}) {
            KernelCase c = caseOf(200, k);
            c.coding = coding;
            c.isResidual = true;
            c.d = 24;
            c.numParts = 6;
            const KernelLists lists(c);
            ASSERT_TRUE(chooses(lists)) << c;
            expectExact(lists);
            expectExactByLimits(lists, 0);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
