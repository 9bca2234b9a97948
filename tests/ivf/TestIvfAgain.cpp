/// Searches of lists by estimates (kernels/ivf/IvfKnn.h) whose bounds are wide:
/// given centers, near and far, and queries that are searched again within the
/// k-th distance that is known, or with all distances kept.

#include "tests/ivf/IvfKernelHarness.h"

namespace faiss_bits::test {
namespace {

class IvfAgain : public GpuTest {
   protected:
    static KernelCase caseOf(Metric metric, ListCoding coding, int d, int k) {
        KernelCase c;
        c.metric = metric;
        c.coding = coding;
        c.d = d;
        c.k = k;
        c.q = 70;
        c.nprobe = 6;
        for (int i = 0; i < 12; ++i) {
            c.lengths.push_back(400 + 31 * i);
        }
        c.numParts = coding == ListCoding::Product ? d / 4 : 1;
        return c;
    }

    /// A search of this mode with centers of lists [lists, d], or the first
    /// vectors'.
    static KernelResult searchOf(
            const KernelLists& lists,
            EstimateMode mode,
            const std::vector<float>& centers) {
        IvfKnnProblem p = lists.problem(mode);
        const IvfKnnPlan plan = planIvfKnn(p, lists.kMaxBytes);
        EXPECT_TRUE(plan.byEstimates()) << plan.toString();
        const DeviceBuffer<float> onDevice(centers);
        p.centroids = centers.empty() ? nullptr : onDevice.data();
        return lists.run(plan, p);
    }

    static void expectExactWithCenters(const std::vector<ListCoding>& codings) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (ListCoding coding : codings) {
                for (int d : {40, 128, 132}) {
                    for (bool isResidual : {false, true}) {
                        KernelCase c = caseOf(metric, coding, d, 7);
                        c.isResidual =
                                isResidual && coding != ListCoding::Float32;
                        const KernelLists lists(c);
                        const auto centers = fillRows(
                                ListFill::NotFinite,
                                idx_t(c.lengths.size()),
                                d,
                                50);
                        for (EstimateMode mode :
                             {EstimateMode::All, EstimateMode::Near}) {
                            lists.expectExact(searchOf(lists, mode, centers));
                            if (HasFatalFailure()) {
                                return;
                            }
                        }
                    }
                }
            }
        }
    }

    static std::vector<float> shifted(std::vector<float> rows, float by) {
        for (float& value : rows) {
            value += by;
        }
        return rows;
    }
};

/// Some of them are not finite.
TEST_F(IvfAgain, SmallGivenCenters) {
    expectExactWithCenters(
            {ListCoding::Float32, ListCoding::Scalar8, ListCoding::Product});
}

TEST_F(IvfAgain, SmallGivenCentersOfOtherCodes) {
    expectExactWithCenters(
            {ListCoding::Float16, ListCoding::Scalar6, ListCoding::Scalar4});
}

/// Nothing is proved with them, as bounds are wider than all distances.
TEST_F(IvfAgain, SmallFarCentersLeaveAllToBeSearchedAgain) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (ListCoding coding : {ListCoding::Float32, ListCoding::Scalar8}) {
            for (int k : {1, 10, 150}) {
                for (int length : {0, 1500}) {
                    KernelCase c = caseOf(metric, coding, 64, k);
                    // Some of the queries have more within their limits than
                    // there is room for.
                    c.lengths[3] += length;
                    c.lengths[8] += length;
                    const KernelLists lists(c);
                    const auto centers =
                            shifted(fillRows(
                                            ListFill::Uniform,
                                            idx_t(c.lengths.size()),
                                            c.d,
                                            51),
                                    1e3f);
                    for (EstimateMode mode :
                         {EstimateMode::All, EstimateMode::Near}) {
                        const KernelResult found =
                                searchOf(lists, mode, centers);
                        lists.expectExact(found);
                        if (HasFatalFailure()) {
                            return;
                        }
                        if (metric == Metric::L2) {
                            EXPECT_EQ(found.lost, c.q) << c;
                        }
                    }
                }
            }
        }
    }
}

/// The first vector of a list is no measure of it.
TEST_F(IvfAgain, SmallCentersProveWhatFirstVectorsDoNot) {
    KernelCase c = caseOf(Metric::L2, ListCoding::Float32, 64, 10);
    c.fill = ListFill::Offset;
    const KernelLists lists(c);
    const auto middle =
            fillRows(ListFill::Offset, idx_t(c.lengths.size()), c.d, 52);
    const auto zero = std::vector<float>(middle.size());
    for (EstimateMode mode : {EstimateMode::All, EstimateMode::Near}) {
        const KernelResult near = searchOf(lists, mode, middle);
        lists.expectExact(near);
        EXPECT_LE(near.lost, c.q / 5);
        const KernelResult far = searchOf(lists, mode, zero);
        lists.expectExact(far);
        EXPECT_EQ(far.lost, c.q);
        EXPECT_TRUE(near.sameAs(far));
    }
}

/// What a row has found may be fewer than k, or none: it has no limit.
TEST_F(IvfAgain, SmallRowsWithoutALimit) {
    for (double selected : {0.001, 0.02, 1.0}) {
        for (ListFill fill :
             {ListFill::Uniform, ListFill::NotFinite, ListFill::Duplicates}) {
            KernelCase c = caseOf(Metric::L2, ListCoding::Float32, 36, 20);
            c.selected = selected;
            c.fill = fill;
            const KernelLists lists(c);
            const auto centers =
                    shifted(fillRows(
                                    ListFill::Uniform,
                                    idx_t(c.lengths.size()),
                                    c.d,
                                    53),
                            1e3f);
            lists.expectExact(searchOf(lists, EstimateMode::All, centers));
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
