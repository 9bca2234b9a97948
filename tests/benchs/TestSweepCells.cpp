/// The cells of bench_select_sweep: what runs without a GPU.

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "benchs/SweepCells.h"
#include "kernels/select/Select.h"

namespace faiss_bits::bench {
namespace {

TEST(SweepCells, SameSeedSameCells) {
    const auto texts = [](uint64_t seed, int count) {
        std::vector<std::string> list;
        for (const SweepCell& cell : drawSweepCells(seed, count)) {
            list.push_back(cell.describe() + std::to_string(cell.seed));
        }
        return list;
    };
    EXPECT_EQ(texts(7, 50), texts(7, 50));
    EXPECT_NE(texts(7, 50), texts(8, 50));
    // A longer run begins as a shorter one.
    auto longer = texts(7, 60);
    longer.resize(50);
    EXPECT_EQ(longer, texts(7, 50));
}

TEST(SweepCells, AllKeepToTheLimits) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
        for (const SweepCell& cell : drawSweepCells(seed, 2000)) {
            ASSERT_TRUE(isSweepCell(cell)) << cell.describe();
        }
    }
}

TEST(SweepCells, LimitsAreChecked) {
    SweepCell cell{1000, 1000, 1000, 10};
    EXPECT_TRUE(isSweepCell(cell));
    const auto with = [&](auto change) {
        SweepCell other = cell;
        change(other);
        return isSweepCell(other);
    };
    EXPECT_FALSE(with([](SweepCell& c) { c.stride = 999; }));
    EXPECT_FALSE(with([](SweepCell& c) { c.stride = 2000000; }));
    EXPECT_FALSE(with([](SweepCell& c) { c.k = 1001; }));
    EXPECT_FALSE(with([](SweepCell& c) { c.k = 0; }));
    EXPECT_FALSE(with([](SweepCell& c) { c.rows = 4; }));
    EXPECT_FALSE(with([](SweepCell& c) { c.cols = 15; }));
    EXPECT_TRUE(with([](SweepCell& c) { c.order = Order::Sift; }));
    EXPECT_FALSE(with([](SweepCell& c) {
        c.order = Order::SiftClustered;
        c.rows = 8001;
    }));
}

TEST(SweepCells, OfEveryKindInOneRun) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
        std::map<Order, int> orders;
        std::map<DataType, int> types;
        std::map<bool, int> largest;
        std::map<bool, int> gaps;
        int all = 0;
        int allButOne = 0;
        int powersOfTwo = 0;
        for (const SweepCell& cell : drawSweepCells(seed, 640)) {
            ++orders[cell.order];
            ++types[cell.type];
            ++largest[cell.largest];
            ++gaps[cell.stride > cell.cols];
            all += cell.k == cell.cols;
            allButOne += cell.k == cell.cols - 1;
            powersOfTwo += (cell.cols & (cell.cols - 1)) == 0;
        }
        EXPECT_EQ(orders.size(), allOrders().size());
        for (const auto& [order, count] : orders) {
            EXPECT_GE(count, 10) << nameOf(order);
        }
        EXPECT_EQ(types.size(), 3u);
        for (const auto& [type, count] : types) {
            EXPECT_GE(count, 100) << nameOf(type);
        }
        EXPECT_GE(largest[true], 150);
        EXPECT_GE(gaps[true], 150);
        EXPECT_GE(gaps[false], 150);
        EXPECT_GE(all, 3);
        EXPECT_GE(allButOne, 3);
        EXPECT_LE(powersOfTwo, 64);
    }
}

/// Each field from its least to about its most.
TEST(SweepCells, OfEverySize) {
    std::set<int64_t> rows;
    std::set<int64_t> cols;
    std::set<int64_t> ks;
    for (const SweepCell& cell : drawSweepCells(3, 2000)) {
        rows.insert(cell.rows);
        cols.insert(cell.cols);
        ks.insert(cell.k);
    }
    EXPECT_EQ(*rows.begin(), 1);
    EXPECT_GT(*rows.rbegin(), kMostSweepRows / 2);
    EXPECT_LT(*cols.begin(), 2 * kLeastSweepCols);
    EXPECT_GT(*cols.rbegin(), kMostSweepCols / 2);
    EXPECT_EQ(*ks.begin(), 1);
    EXPECT_GT(*ks.rbegin(), kMostSweepK / 2);
}

TEST(SweepCells, EveryCellHasAPlan) {
    std::map<std::string, int> algorithms;
    for (const SweepCell& cell : drawSweepCells(11, 2000)) {
        SelectProblem p;
        p.rows = cell.rows;
        p.cols = cell.cols;
        p.k = cell.k;
        p.keyType = cell.type;
        p.largest = cell.largest;
        p.rowStride = cell.stride;
        SelectPlan plan;
        ASSERT_NO_THROW(plan = planSelection(p)) << cell.describe();
        ++algorithms[nameOf(plan.algorithm())];
        // Scratch in proportion: keys in and out and as much again.
        EXPECT_LE(plan.workspaceBytes(), size_t(48) << 30) << cell.describe();
    }
    EXPECT_GE(algorithms.size(), 4u);
    EXPECT_GE(algorithms["sample_threshold"], 400);
}

} // namespace
} // namespace faiss_bits::bench
