/// Plans of searches of inverted lists, which need no device.

#include <gtest/gtest.h>

#include "kernels/common/Error.h"
#include "kernels/ivf/IvfFilterBits.h"
#include "kernels/ivf/IvfKnn.h"
#include "kernels/ivf/IvfRange.h"
#include "kernels/ivf/IvfSelectedCopy.h"
#include "tests/common/ExpectError.h"
#include "tests/ivf/IvfPlanProblem.h"

namespace faiss_bits::test {
namespace {

/// Of the longest list.
idx_t columnsOfList(const IvfKnnPlan& plan, const IvfKnnProblem& p) {
    return plan.sampleVectors > 0 ? std::min(plan.sampleVectors, p.longestList)
                                  : p.longestList;
}

TEST(IvfPlan, QueriesThatMeetInListsGoListByList) {
    IvfKnnProblem p = someProblem();
    EXPECT_TRUE(planIvfKnn(p, size_t(448) << 20).listMajor);
    p.numQueries = 16;
    EXPECT_FALSE(planIvfKnn(p, size_t(448) << 20).listMajor);
    p.numQueries = 10240;
    // Estimates need few operations of float64; all distances many.
    p.device.singleToDouble = 64;
    EXPECT_TRUE(planIvfKnn(p, size_t(448) << 20).byEstimates());
    p.mayWait = false;
    EXPECT_FALSE(planIvfKnn(p, size_t(448) << 20).listMajor);
}

TEST(IvfPlan, ScratchIsBounded) {
    IvfKnnProblem p = someProblem();
    for (int nprobe : {1, 32, 1024}) {
        for (int k : {1, 100, 5000}) {
            p.nprobe = nprobe;
            p.k = k;
            p.mostVectors = 1200 * nprobe;
            for (size_t most : {size_t(64) << 20, size_t(448) << 20}) {
                p.longestList = 1200;
                const IvfKnnPlan plan = planIvfKnn(p, most);
                EXPECT_LE(plan.bytes, most) << nprobe << " " << k;
                EXPECT_GE(plan.rowsAtATime, 1);
                if (!plan.byEstimates()) {
                    EXPECT_GE(plan.stride, p.mostVectors);
                }
                // Half as many again would not fit, but for even parts.
                if (plan.rowsAtATime < p.numQueries) {
                    EXPECT_GE(plan.bytes, most / 4) << nprobe << " " << k;
                }
            }
            EXPECT_EQ(planIvfKnn(p, 0).rowsAtATime, 1); // the least
        }
    }
}

TEST(IvfPlan, ScratchOfRangesIsBounded) {
    IvfKnnProblem p = someProblem();
    for (const int64_t vectors : {0, 1, 40, 40000, 1 << 20}) {
        for (const int64_t q : {1, 16, 10240}) {
            for (const int nprobe : {1, 32, 1024}) {
                p.numQueries = q;
                p.nprobe = nprobe;
                p.mostVectors = vectors;
                const size_t most = size_t(64) << 20;
                const IvfRangePlan plan = planIvfRange(p, most);
                EXPECT_FALSE(plan.search.byEstimates());
                EXPECT_GE(plan.search.stride, vectors);
                EXPECT_LE(plan.bytes, most) << vectors << " " << q;
                if (plan.search.rowsAtATime < q) {
                    EXPECT_GE(plan.bytes, most / 8) << vectors << " " << q;
                }
                // Results of a part, 12 bytes each, fit in the rest where a
                // search has a quarter of what there is.
                const size_t results =
                        12 * size_t(plan.search.rowsAtATime) * size_t(vectors);
                EXPECT_LE(plan.bytes + results, 4 * most);
                EXPECT_EQ(planIvfRange(p, 0).search.rowsAtATime, 1);
            }
        }
    }
}

TEST(IvfPlan, RangesOfManyQueriesGoByBounds) {
    IvfKnnProblem p = someProblem();
    const size_t most = size_t(1) << 30;
    const IvfRangePlan many = planIvfRange(p, most);
    ASSERT_TRUE(many.found);
    EXPECT_EQ(many.found->search.rowsAtATime, p.numQueries);
    EXPECT_GE(many.found->search.room, p.mostVectors / 16);
    EXPECT_LE(many.bytes, most);
    EXPECT_GE(many.bytes, many.found->bytes);
    EXPECT_FALSE(planIvfRange(p, most, IvfRangeWay::Distances).found);
    // Of fewer queries each may find more.
    p.numQueries = 1024;
    const IvfRangePlan fewer = planIvfRange(p, most);
    ASSERT_TRUE(fewer.found);
    EXPECT_GT(fewer.found->search.room, many.found->search.room);
    p.numQueries = 1;
    EXPECT_FALSE(planIvfRange(p, most).found);
    EXPECT_TRUE(planIvfRange(p, most, IvfRangeWay::Bounds).found);
    // Less scratch than 64 queries take; numbers of more than 31 bits; a table
    // of probes that no block has room for.
    p = someProblem();
    EXPECT_FALSE(planIvfRange(p, 1 << 20, IvfRangeWay::Bounds).found);
    p.mostVectors = (idx_t(1) << 31) - 16;
    EXPECT_FALSE(planIvfRange(p, SIZE_MAX, IvfRangeWay::Bounds).found);
    p = someProblem();
    p.lists.numLists = 8192;
    p.nprobe = 4096;
    EXPECT_TRUE(planIvfRange(p, most, IvfRangeWay::Bounds).found);
    p.nprobe = 4097;
    EXPECT_FALSE(planIvfRange(p, most, IvfRangeWay::Bounds).found);
    p.numQueries = 0;
    EXPECT_FALSE(planIvfRange(p, most, IvfRangeWay::Bounds).found);
}

TEST(IvfPlan, KeepsWhatIsNearWhereItMayWait) {
    IvfKnnProblem p = someProblem();
    p.longestList = 1300;
    const IvfKnnPlan near = planIvfKnn(p, size_t(448) << 20);
    EXPECT_LT(near.nearProbes, p.nprobe);
    EXPECT_GT(near.room, 10 * p.k);
    EXPECT_GT(near.candidates, p.k);
    EXPECT_GE(
            near.stride * near.boundVectors,
            near.nearProbes * columnsOfList(near, p));
    EXPECT_EQ(near.rowsAtATime, p.numQueries); // in one piece
    p.mayWait = false;
    const IvfKnnPlan all = planIvfKnn(p, size_t(448) << 20);
    EXPECT_EQ(all.nearProbes, p.nprobe);
    EXPECT_EQ(all.room, 0);
    p.mayWait = true;
    p.k = 20000; // half of all
    EXPECT_EQ(planIvfKnn(p, size_t(448) << 20).room, 0);
}

TEST(IvfPlan, FourVectorsShareABoundWhereNearListsHaveEnough) {
    // Of 1,000 and more vectors a list.
    IvfKnnProblem p = someProblem();
    p.longestList = 1300;
    for (int k : {1, 10, 100, 1000}) {
        p.k = k;
        p.nprobe = k == 1000 ? 128 : 32; // of fewer lists all bounds are kept
        p.mostVectors = 1250 * p.nprobe;
        const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
        ASSERT_GT(plan.room, 0) << k;
        EXPECT_EQ(plan.boundVectors, 4) << k;
        // Columns of a list begin with a four.
        const idx_t columns = columnsOfList(plan, p);
        EXPECT_GE(4 * plan.stride, plan.nearProbes * ((columns + 3) / 4 * 4));
        EXPECT_LE(4 * plan.stride, plan.nearProbes * (columns + 3) + 64);
    }
    p.nprobe = 32;
    p.mostVectors = 1250 * p.nprobe;
    // Twelve vectors in 16 lists for each that is wanted, and some fewer; the
    // matrix would be longer than all that is found.
    p.k = 10;
    p.selectedShare = 12.0 * p.k / 16 * p.nprobe / double(p.mostVectors);
    p.selectedShare *= 1.001;
    EXPECT_EQ(planIvfKnn(p, size_t(448) << 20).boundVectors, 4);
    p.selectedShare *= 0.99;
    const IvfKnnPlan fewer = planIvfKnn(p, size_t(448) << 20);
    EXPECT_EQ(fewer.boundVectors, 1);
    // All distances have a column each.
    p.mayWait = false;
    EXPECT_EQ(planIvfKnn(p, size_t(448) << 20).boundVectors, 1);
}

TEST(IvfPlan, ShortPartsOfListsSetLimits) {
    IvfKnnProblem p = someProblem();
    p.longestList = 1300;
    for (int k : {1, 10, 100}) {
        p.k = k;
        const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
        ASSERT_GT(plan.room, 0) << k;
        EXPECT_EQ(plan.sampleVectors, 256) << k;
        EXPECT_LE(plan.nearProbes, p.nprobe);
        // With twelve vectors and more for each that is wanted.
        EXPECT_GE(plan.nearProbes * plan.sampleVectors, 12 * k);
    }
    // What a part of the nearest lists leaves to be found would take longer
    // than it takes to read them.
    p.k = 1000;
    EXPECT_EQ(planIvfKnn(p, size_t(448) << 20).sampleVectors, 0);
    // Short lists are read as wholes.
    p.k = 10;
    p.lists.numLists = 4096;
    p.nprobe = 128;
    p.longestList = 320;
    const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
    ASSERT_GT(plan.room, 0);
    EXPECT_EQ(plan.sampleVectors, 0);
}

TEST(IvfPlan, CopiesWhatIsSelectedWhereItPays) {
    IvfKnnProblem p = someProblem();
    const idx_t n = p.lists.numVectors;
    EXPECT_TRUE(countingSelectedPays(p, n / 100));
    EXPECT_FALSE(countingSelectedPays(p, n));
    EXPECT_TRUE(copyingSelectedPays(p, 0));
    EXPECT_TRUE(copyingSelectedPays(p, n / 100));
    EXPECT_TRUE(copyingSelectedPays(p, n / 4));
    EXPECT_FALSE(copyingSelectedPays(p, n - n / 4));
    EXPECT_FALSE(copyingSelectedPays(p, n));
    EXPECT_FALSE(copyingSelectedPays(p, 2 * n)); // a wrong guess
    p.nprobe = 128; // a long search: also to see that all are selected
    EXPECT_TRUE(countingSelectedPays(p, n));
    p.mayWait = false;
    EXPECT_FALSE(countingSelectedPays(p, n / 100));
    p = someProblem();
    p.numQueries = 1;
    EXPECT_FALSE(countingSelectedPays(p, n / 100));
    EXPECT_FALSE(copyingSelectedPays(p, n / 100));
    p.numQueries = 400; // each reads its lists
    EXPECT_TRUE(countingSelectedPays(p, n / 100));
    EXPECT_TRUE(copyingSelectedPays(p, n / 100));
    EXPECT_FALSE(copyingSelectedPays(p, n - n / 4));
    p.numQueries = 100;
    EXPECT_FALSE(countingSelectedPays(p, n / 100));
    p = someProblem();
    p.lists.coding = ListCoding::Float16;
    EXPECT_FALSE(countingSelectedPays(p, n / 100));
    p = someProblem();
    p.lists.numVectors = idx_t(1) << 32;
    EXPECT_FALSE(countingSelectedPays(p, n)); // counts have 32 bits
}

TEST(IvfPlan, CopiesOfTests) {
    // tests/ivf/TestIvfFilters.cpp rests on these.
    IvfKnnProblem p = someProblem();
    p.lists.numLists = 40;
    p.lists.d = 67;
    p.lists.numVectors = 50000;
    p.numQueries = 6000;
    p.nprobe = 20;
    EXPECT_TRUE(ivfPairsMeet(p));
    for (idx_t selected : {25, 500, 5000}) {
        EXPECT_TRUE(countingSelectedPays(p, selected)) << selected;
        EXPECT_TRUE(copyingSelectedPays(p, selected)) << selected;
    }
    EXPECT_FALSE(copyingSelectedPays(p, 48500));
    p.lists.numVectors = 300000;
    p.numQueries = 42;
    p.nprobe = 15;
    EXPECT_FALSE(ivfPairsMeet(p));
    EXPECT_FALSE(countingSelectedPays(p, 150));
    for (idx_t selected : {9000, 30000}) {
        EXPECT_TRUE(countingSelectedPays(p, selected)) << selected;
        EXPECT_TRUE(copyingSelectedPays(p, selected)) << selected;
    }
    EXPECT_FALSE(copyingSelectedPays(p, 270000));
    // Padding makes the difference.
    p.lists.numLists = 4096;
    p.lists.d = 700;
    p.lists.numVectors = 20000;
    p.numQueries = 8000;
    p.nprobe = 200;
    EXPECT_TRUE(ivfPairsMeet(p));
    for (idx_t selected : {200, 1000}) {
        EXPECT_TRUE(countingSelectedPays(p, selected)) << selected;
        EXPECT_TRUE(copyingSelectedPays(p, selected)) << selected;
        WorkspaceSlices padded;
        IvfSelectedCopy(p.lists, selected, ListLayout::Interleaved, padded);
        EXPECT_GT(padded.used(), size_t(224) << 20);
        WorkspaceSlices rows;
        IvfSelectedCopy(p.lists, selected, ListLayout::Rows, rows);
        EXPECT_LT(rows.used(), size_t(20) << 20);
    }
}

TEST(IvfPlan, WordsOfEvenListsNeedNoSums) {
    IvfLists lists = someProblem().lists; // 1,024 vectors on average
    EXPECT_EQ(ivfFilterWords(lists), lists.numVectors / 32 + lists.numLists);
    EXPECT_EQ(ivfWordsOfList(lists, 1024), 32u);
    EXPECT_EQ(ivfWordsOfList(lists, 1025), 33u);
    EXPECT_EQ(ivfWordsOfList(lists, 4 * 33 * 32), 4 * 33u);
    EXPECT_EQ(ivfWordsOfList(lists, 4 * 33 * 32 + 1), 0u);
    lists.wordsOfList = 40;
    EXPECT_EQ(ivfFilterWords(lists), 40 * lists.numLists);
    lists.numVectors = 0;
    EXPECT_EQ(ivfWordsOfList(lists, 0), 1u);
}

TEST(IvfPlan, FewSelectedVectorsSetNoLimit) {
    IvfKnnProblem p = someProblem();
    p.longestList = 1300;
    const IvfKnnPlan all = planIvfKnn(p, size_t(448) << 20);
    EXPECT_TRUE(all.byEstimates());
    p.selectedShare = 0.2;
    const IvfKnnPlan some = planIvfKnn(p, size_t(448) << 20);
    EXPECT_TRUE(some.byEstimates());
    EXPECT_GT(some.nearProbes, all.nearProbes);
    // Near lists would have too few: bounds of all lists, or distances.
    p.selectedShare = 0.001;
    EXPECT_EQ(planIvfKnn(p, size_t(448) << 20).room, 0);
}

TEST(IvfPlan, CodesHaveEstimates) {
    IvfKnnProblem p = someProblem();
    p.longestList = 1300;
    p.lists.decoding.numParts = 16;
    for (ListCoding coding :
         {ListCoding::Float16,
          ListCoding::Scalar8,
          ListCoding::Scalar6,
          ListCoding::Scalar4,
          ListCoding::Product}) {
        p.lists.coding = coding;
        const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
        EXPECT_TRUE(plan.listMajor);
        EXPECT_TRUE(plan.byEstimates());
        EXPECT_LE(plan.bytes, size_t(448) << 20);
    }
}

TEST(IvfPlan, RefusesBadCodes) {
    const auto throwsFor = [](const IvfKnnProblem& p, const char* name) {
        return throwsNaming([&] { planIvfKnn(p, 1 << 30); }, name);
    };
    IvfKnnProblem p = someProblem();
    p.lists.coding = ListCoding(99);
    EXPECT_TRUE(throwsFor(p, "lists.coding"));
    p.lists.coding = ListCoding::Scalar6;
    p.lists.layout = ListLayout::Rows;
    EXPECT_TRUE(throwsFor(p, "lists.layout"));
    p.lists.coding = ListCoding::Scalar8;
    const float ranges[256] = {};
    p.lists.decoding.trained = ranges;
    p.lists.decoding.ranges = 2;
    EXPECT_TRUE(throwsFor(p, "lists.decoding.ranges"));
    p.lists.coding = ListCoding::Product;
    EXPECT_TRUE(throwsFor(p, "lists.decoding.numParts")); // 0
    p.lists.decoding.numParts = 3;
    EXPECT_TRUE(throwsFor(p, "lists.decoding.numParts"));
    p.lists.decoding.numParts = 4;
    p.lists.decoding.partBits = 6; // in rows
    EXPECT_TRUE(throwsFor(p, "lists.decoding.partBits"));
    p.lists.layout = ListLayout::Interleaved;
    EXPECT_NO_THROW(planIvfKnn(p, 1 << 30));
    p.lists.decoding.partBits = 9;
    EXPECT_TRUE(throwsFor(p, "lists.decoding.partBits"));
}

TEST(IvfPlan, RefusesBadShapes) {
    const auto throwsFor = [](const IvfKnnProblem& p, const char* name) {
        return throwsNaming([&] { planIvfKnn(p, 1 << 30); }, name);
    };
    IvfKnnProblem p = someProblem();
    p.metric = Metric::L1;
    EXPECT_TRUE(throwsFor(p, "metric"));
    p = someProblem();
    p.k = 0;
    EXPECT_TRUE(throwsFor(p, "k"));
    p = someProblem();
    p.nprobe = 0;
    EXPECT_TRUE(throwsFor(p, "nprobe"));
    p = someProblem();
    p.lists.d = 0;
    EXPECT_TRUE(throwsFor(p, "lists.d"));
    p = someProblem();
    p.lists.numLists = 0;
    EXPECT_TRUE(throwsFor(p, "lists.numLists"));
    p = someProblem();
    p.numQueries = -1;
    EXPECT_TRUE(throwsFor(p, "numQueries"));
    p = someProblem();
    p.mostVectors = idx_t(1) << 31;
    EXPECT_TRUE(throwsFor(p, "mostVectors"));
}

} // namespace
} // namespace faiss_bits::test
