/// How rows of 16-bit keys are dealt out to blocks that count digits, and which
/// the table sends there. Makes no CUDA call.

#include <gtest/gtest.h>

#include "kernels/select/SelectCost.h"
#include "kernels/select/large_k/DigitSort.h"

namespace faiss_bits::test {
namespace {

SelectProblem onH100(idx_t rows, idx_t cols, int k) {
    SelectProblem p;
    p.rows = rows;
    p.cols = cols;
    p.k = k;
    p.keyType = DataType::Float16;
    p.device = {90, 132, 228 * 1024, 227 * 1024};
    return p;
}

TEST(DigitSortPlans, OneRoundOfBlocksForFewRows) {
    const auto splits = [](idx_t rows, idx_t cols, int k) {
        const DigitSortPlan plan = planDigitSort(onH100(rows, cols, k));
        return std::make_pair(int(plan.splits), int(plan.entrySplits));
    };
    using Pair = std::pair<int, int>;
    EXPECT_EQ(splits(1, 1, 1), Pair(1, 1));
    EXPECT_EQ(splits(1, 4096, 4096), Pair(1, 1));
    EXPECT_EQ(splits(1, 4097, 4097), Pair(2, 2));
    EXPECT_EQ(splits(1, 1 << 20, 8193), Pair(132, 3));
    EXPECT_EQ(splits(4, 1 << 20, 1 << 20), Pair(33, 33));
    EXPECT_EQ(splits(66, 1 << 20, 1 << 20), Pair(2, 2));
    EXPECT_EQ(splits(67, 1 << 20, 1 << 20), Pair(8, 8)) << "four rounds";
    EXPECT_EQ(splits(528, 1 << 20, 1 << 16), Pair(1, 1));
    EXPECT_EQ(splits(528, 1 << 20, 1 << 20), Pair(5, 5)) << "in five batches";
    EXPECT_EQ(splits(3, 5000, 1 << 20), Pair(2, 2)) << "k beyond the row";
}

TEST(DigitSortPlans, ManySplitsAreBounded) {
    SelectProblem p = onH100(1, idx_t(1) << 27, 100000);
    p.device.multiprocessors = 1000;
    EXPECT_EQ(planDigitSort(p).splits, kMostDigitSplits);
}

TEST(DigitSortPlans, RowsAreTakenInBatches) {
    SelectProblem p = onH100(1000, 1 << 20, 1 << 20);
    const DigitSortPlan plan = planDigitSort(p);
    EXPECT_LT(plan.batch, p.rows);
    EXPECT_GE(plan.batch, 100);
    EXPECT_LE(digitSortWorkspaceBytes(p, plan), size_t(5) << 28);
    p.rows = 1;
    EXPECT_EQ(planDigitSort(p).batch, 1);
    EXPECT_LE(digitSortWorkspaceBytes(p, planDigitSort(p)), size_t(9) << 20);
}

TEST(DigitSortPlans, WideKeysAndNothingAreNot) {
    SelectProblem p = onH100(2, 100000, 10000);
    EXPECT_GT(planDigitSort(p).splits, 0u);
    p.keyType = DataType::Float32;
    EXPECT_EQ(planDigitSort(p).splits, 0u);
    p = onH100(0, 100000, 10000);
    EXPECT_EQ(planDigitSort(p).splits, 0u);
    p = onH100(2, 0, 10000);
    EXPECT_EQ(planDigitSort(p).splits, 0u);
}

/// Both sides of the rows of the table, and the way that `sort` goes there.
TEST(DigitSortPlans, TheTableSendsLargeKThere) {
    const auto byDigits = [](idx_t rows, idx_t cols, int k) {
        const SelectPlan plan = planSelection(onH100(rows, cols, k));
        return plan.algorithm() == SelectAlgorithm::Sort &&
                plan.toString().find("by digits") != std::string::npos;
    };
    struct Bound {
        idx_t rows;
        idx_t cols;
        int k; // the largest that is not
    };
    const Bound bounds[] = {
            {1, 100000, 4096},
            {4, 262144, 4096},
            {4, 262145, 8192},
            {1, 524289, 16384},
            {1, 1048577, 131072},
            {4, 8388608, 131072},
            {5, 50000, 32768},
            {2875, 48342, 32768},
            {5, 262144, 131072},
            {242, 524288, 131072},
            {242, 666319, 524288}};
    for (const Bound& bound : bounds) {
        EXPECT_FALSE(byDigits(bound.rows, bound.cols, bound.k))
                << bound.rows << " x " << bound.cols;
        EXPECT_TRUE(byDigits(bound.rows, bound.cols, bound.k + 1))
                << bound.rows << " x " << bound.cols << ", "
                << planSelection(onH100(bound.rows, bound.cols, bound.k + 1))
                           .toString();
    }
    EXPECT_FALSE(byDigits(1, 32768, 30000)) << "a block has room";
}

TEST(DigitSortPlans, KOfOneStaysWithBits) {
    for (idx_t cols : {100000, 300000, 1000000, 5000000}) {
        EXPECT_EQ(
                planSelection(onH100(1, cols, 1)).algorithm(),
                SelectAlgorithm::Bits)
                << cols;
    }
}

/// Blocks that sum the counts of others, and every pass, take time.
TEST(DigitSortPlans, CostGrowsWithKeysAndResults) {
    const auto cost = [](idx_t rows, idx_t cols, int k) {
        SelectProblem p = onH100(rows, cols, k);
        p.algorithm = SelectAlgorithm::Sort;
        return selectMicroseconds(planSelection(p), p);
    };
    EXPECT_LT(cost(1, 1 << 20, 1 << 18), cost(1, 1 << 22, 1 << 18));
    EXPECT_LT(cost(1, 1 << 20, 1 << 18), cost(1, 1 << 20, 1 << 20));
    EXPECT_LT(cost(100, 1 << 18, 1 << 18), cost(400, 1 << 18, 1 << 18));
    EXPECT_GT(cost(1, 40000, 20000), 10);
}

} // namespace
} // namespace faiss_bits::test
