/// Candidates that are scored list by list, with the list's queries in shared
/// memory (kernels/ivf/IvfListCandidates.h): against float64 distances, of
/// dimensions around what lanes take, lists with more queries than lie there,
/// and lists that begin anywhere.

#include "kernels/ivf/IvfChoice.h"
#include "kernels/ivf/IvfListCandidates.h"
#include "tests/ivf/IvfKernelHarness.h"

namespace faiss_bits::test {
namespace {

class IvfListCandidates : public GpuTest {
   protected:
    /// So many queries a list, on average.
    static KernelCase caseOf(ListCoding coding, int d, int ofList) {
        KernelCase c;
        c.d = d;
        c.coding = coding;
        c.isResidual = coding != ListCoding::Float32 && d % 2 == 0;
        c.lengths = {0,  1,  31, 32, 33, 64, 90, 127, 128, 129, 160, 255,
                     90, 90, 90, 90, 90, 90, 90, 90,  90,  90,  90,  90};
        c.nprobe = 8;
        c.q = idx_t(ofList) * idx_t(c.lengths.size()) / c.nprobe;
        c.k = 30;
        c.lengths64 = d % 2;
        c.seed = uint32_t(d) + uint32_t(ofList);
        return c;
    }

    /// Of the first estimates, as the search decides.
    static uint32_t queriesOf(
            const KernelLists& lists,
            const IvfKnnProblem& p,
            const IvfKnnPlan& plan) {
        WorkspaceSlices slices;
        IvfParams params = IvfScratch(p, plan, slices).params;
        params.lists = p.lists;
        params.d = p.lists.d;
        params.rows = uint32_t(lists.c.q);
        params.k = p.k;
        return ivfListQueries(params, plan.candidates);
    }

    /// The search takes them, or not, and its results are exact.
    static void search(const KernelCase& c, bool taken = true) {
        const KernelLists lists(c);
        const IvfKnnProblem p = lists.problem(EstimateMode::All);
        const IvfKnnPlan plan = planIvfKnn(p, KernelLists::kMaxBytes);
        ASSERT_TRUE(plan.byEstimates() && plan.room == 0) << plan.toString();
        ASSERT_TRUE(choosesIvf(plan, p) && !plan.scoresByRows)
                << plan.toString();
        ASSERT_EQ(queriesOf(lists, p, plan) > 0, taken) << c;
        lists.expectExact(lists.run(plan, p));
    }

    static std::vector<ListCoding> codings() {
        return {ListCoding::Float32, ListCoding::Scalar8};
    }
};

TEST_F(IvfListCandidates, SmallDims) {
    for (ListCoding coding : codings()) {
        for (int d : {1, 7, 8, 9, 31, 32, 64, 100, 127, 128}) {
            for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
                KernelCase c = caseOf(coding, d, 12);
                c.metric = metric;
                search(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(IvfListCandidates, SmallListsWithMoreQueriesThanLieThere) {
    for (ListCoding coding : codings()) {
        for (int ofList : {8, 30, coding == ListCoding::Float32 ? 32 : 90}) {
            for (int k : {40, 100, 128}) {
                KernelCase c = caseOf(coding, 24, ofList);
                c.k = k;
                search(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(IvfListCandidates, SmallListsAnywhereAndFilters) {
    for (ListCoding coding : codings()) {
        for (int shift : {0, 4, 16, 24}) {
            // Estimates read four vectors at a time: sixteen bytes of float32,
            // and four of codes, on an address that is a multiple of that.
            if (coding == ListCoding::Float32 && shift % 16 > 0) {
                continue;
            }
            for (double selected : {1.0, 0.5}) {
                KernelCase c = caseOf(coding, 40, 20);
                c.listShift = shift;
                c.selected = selected;
                search(c);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(IvfListCandidates, SmallValuesOfEverySize) {
    for (ListCoding coding : codings()) {
        for (ListFill fill :
             {ListFill::Integers,
              ListFill::Duplicates,
              ListFill::Offset,
              ListFill::Huge,
              ListFill::Mixed,
              ListFill::NotFinite}) {
            KernelCase c = caseOf(coding, 48, 12);
            c.fill = fill;
            search(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(IvfListCandidates, SmallGridsOfFewBlocks) {
    for (ListCoding coding : codings()) {
        for (int multiprocessors : {1, 2, 7}) {
            KernelCase c = caseOf(coding, 128, 12);
            c.multiprocessors = multiprocessors;
            search(c);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_F(IvfListCandidates, OthersAreScoredAsBefore) {
    KernelCase c = caseOf(ListCoding::Float32, 64, 12);
    c.layout = ListLayout::Rows;
    search(c, false);
    c = caseOf(ListCoding::Float16, 64, 12);
    search(c, false);
    search(caseOf(ListCoding::Float32, 129, 12), false);
    search(caseOf(ListCoding::Float32, 64, 160), false);
    // Few candidates: a group is not read for them.
    c = caseOf(ListCoding::Scalar8, 64, 12);
    c.lengths.assign(24, 1000);
    c.k = 100;
    search(c, false);
}

} // namespace
} // namespace faiss_bits::test
