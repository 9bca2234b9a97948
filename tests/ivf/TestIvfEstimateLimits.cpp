/// Limits of searches of lists by estimates (kernels/ivf/IvfKnn.h): of near
/// lists, where four vectors have one bound together, and of candidates, some
/// of which cannot be among the nearest.

#include "tests/ivf/IvfKernelHarness.h"

namespace faiss_bits::test {
namespace {

class IvfEstimateLimits : public GpuTest {
   protected:
    /// Lists of about `length` vectors, whose last four is whole or has one,
    /// two or three.
    static KernelCase caseOf(int length, int k) {
        KernelCase c;
        c.d = 40;
        for (int i = 0; i < 16; ++i) {
            c.lengths.push_back(length + i % 4);
        }
        c.k = k;
        c.q = 30;
        return c;
    }

    static int boundVectors(const KernelLists& lists) {
        const IvfKnnProblem p = lists.problem(EstimateMode::Near);
        return planIvfKnn(p, lists.kMaxBytes).boundVectors;
    }
};

TEST_F(IvfEstimateLimits, SmallFoursOfNearLists) {
    for (int length : {1, 4, 31, 33, 64, 253, 257}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (int d : {3, 40, 128, 131}) {
                KernelCase c = caseOf(length, 1 + length / 60);
                c.d = d;
                c.metric = metric;
                const KernelLists lists(c);
                // Twelve for each that is wanted, in half of the lists.
                const bool haveFours = length >= 4;
                if (length > 1) {
                    EXPECT_EQ(boundVectors(lists), haveFours ? 4 : 1) << c;
                    lists.expectExact(lists.run(EstimateMode::Near));
                }
                lists.expectExact(lists.run(EstimateMode::All));
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(IvfEstimateLimits, SmallFoursOfWhichAFilterLeavesSome) {
    for (double selected : {0.2, 0.5, 0.9}) {
        for (ListFill fill :
             {ListFill::Uniform, ListFill::Integers, ListFill::NotFinite}) {
            KernelCase c = caseOf(120, 4);
            c.selected = selected;
            c.fill = fill;
            const KernelLists lists(c);
            EXPECT_EQ(boundVectors(lists), 4) << c;
            lists.expectExact(lists.run(EstimateMode::Near));
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Parts of lists: at the ends of items, of groups of 32 vectors and of lists.
TEST_F(IvfEstimateLimits, SmallPartsOfNearLists) {
    for (int length : {250, 256, 257, 300, 510, 513, 900, 2100}) {
        for (idx_t sample : {256, 512}) {
            for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
                KernelCase c = caseOf(length, 4);
                c.lengths.resize(8);
                c.lengths[3] = 0;
                c.lengths[5] = 31;
                c.d = metric == Metric::L2 ? 36 : 140;
                c.metric = metric;
                c.selected = length == 900 ? 0.7 : 1;
                const KernelLists lists(c);
                const IvfKnnProblem p = lists.problem(EstimateMode::Near);
                const IvfKnnPlan plan = planIvfKnn(p, lists.kMaxBytes);
                ASSERT_GT(plan.room, 0);
                for (int boundVectors : {1, 4}) {
                    if (boundVectors < plan.boundVectors) {
                        continue; // the matrix has no room for it
                    }
                    IvfKnnPlan changed = plan;
                    changed.boundVectors = boundVectors;
                    changed.sampleVectors = sample;
                    if (sample > plan.sampleVectors && plan.sampleVectors > 0) {
                        // As many columns, of fewer lists.
                        changed.nearProbes = int(std::max<idx_t>(
                                plan.nearProbes * plan.sampleVectors / sample,
                                1));
                    }
                    lists.expectExact(lists.run(changed, p));
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Vectors that are near stand where a part does not look.
TEST_F(IvfEstimateLimits, SmallPartsThatAreNotLikeTheRest) {
    KernelCase c = caseOf(1000, 5);
    c.lengths.resize(8);
    for (ListFill fill :
         {ListFill::Duplicates, ListFill::Integers, ListFill::NotFinite}) {
        c.fill = fill;
        const KernelLists lists(c);
        const IvfKnnProblem p = lists.problem(EstimateMode::Near);
        IvfKnnPlan plan = planIvfKnn(p, lists.kMaxBytes);
        ASSERT_GT(plan.room, 0);
        plan.sampleVectors = 256;
        lists.expectExact(lists.run(plan, p));
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST_F(IvfEstimateLimits, SmallFewerFoursThanWanted) {
    // Near lists of the plan have enough; those of most queries are short. What
    // has no limit finds all, and is searched again where there is no room.
    KernelCase c = caseOf(3, 20);
    c.lengths[5] = 400;
    c.lengths[9] = 400;
    const KernelLists lists(c);
    for (EstimateMode mode : {EstimateMode::All, EstimateMode::Near}) {
        const IvfKnnProblem p = lists.problem(mode);
        if (planIvfKnn(p, lists.kMaxBytes).byEstimates()) {
            lists.expectExact(lists.run(p));
        }
    }
}

TEST_F(IvfEstimateLimits, SmallCandidatesBeyondTheNearestAreNotScored) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int d : {64, 128, 200}) {
            for (int k : {1, 10, 60}) {
                KernelCase c = caseOf(500, k);
                c.d = d;
                c.metric = metric;
                const KernelLists lists(c);
                for (EstimateMode mode :
                     {EstimateMode::All, EstimateMode::Near}) {
                    const IvfKnnProblem p = lists.problem(mode);
                    IvfKnnPlan plan = planIvfKnn(p, lists.kMaxBytes);
                    plan.scoresByRows = false; // which counts none
                    const KernelResult found = lists.run(plan, p);
                    lists.expectExact(found);
                    if (HasFatalFailure()) {
                        return;
                    }
                    ASSERT_EQ(found.lost, 0) << c;
                    EXPECT_GE(found.scored, c.q * k) << c;
                    // Of k + 16 + k / 2 that are chosen.
                    EXPECT_LT(found.scored, c.q * (k + 16 + k / 2) * 9 / 10)
                            << c;
                }
            }
        }
    }
}

TEST_F(IvfEstimateLimits, SmallWhatHasNoBoundLeavesAllToBeScored) {
    // A vector of each list is beyond what has a bound, and may be anywhere.
    KernelCase c = caseOf(300, 10);
    c.d = 64;
    c.fill = ListFill::NotFinite;
    const KernelLists lists(c);
    lists.expectExactByEstimates();
    // Vectors of every size: the widest bound of a row is that of the greatest.
    c.fill = ListFill::Mixed;
    const KernelLists mixed(c);
    mixed.expectExactByEstimates();
    c.metric = Metric::InnerProduct;
    const KernelLists products(c);
    products.expectExactByEstimates();
}

TEST_F(IvfEstimateLimits, SmallEqualDistancesAtTheLastPlace) {
    // Their lower bounds differ, as those of vectors in other lists do.
    for (int k : {5, 12, 50}) {
        KernelCase c = caseOf(200, k);
        c.fill = ListFill::Integers;
        for (int d : {4, 9, 33}) {
            c.d = d;
            const KernelLists lists(c);
            lists.expectExactByEstimates();
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
