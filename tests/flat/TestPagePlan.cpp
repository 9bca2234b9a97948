/// How calls with host arrays are cut into pages: no GPU is needed.

#include <limits>

#include <gtest/gtest.h>

#include "faiss_bits/common/PagePlan.h"

namespace faiss_bits::test {
namespace {

using namespace gpu::detail;

constexpr size_t kMiB = size_t(1) << 20;

PageMemory hostMemory(size_t bytesPerRow, size_t pinnedBytes = 256 * kMiB) {
    PageMemory memory;
    memory.hostArrays = true;
    memory.stagedBytesPerRow = bytesPerRow;
    memory.pinnedBytesPerRow = bytesPerRow;
    memory.pinnedBytes = pinnedBytes;
    return memory;
}

TEST(PagePlan, CoversAllRowsWithinTheLimits) {
    for (idx_t rows : {1, 2, 3, 1000, 5041, 100000, 1 << 24}) {
        for (size_t bytes : {1, 12, 1712, 100000, 1 << 25}) {
            for (double work : {0.0, 1.0, 1e6, 1e9, 3e12}) {
                for (size_t scratch : {size_t(0), size_t(256), 100 * kMiB}) {
                    for (size_t pageBytes : {size_t(0), 3 * kMiB, SIZE_MAX}) {
                        PageLimits limits;
                        limits.rows = rows;
                        limits.workPerRow = work;
                        limits.scratchBytesPerRow = scratch;
                        limits.pageBytes = pageBytes;
                        const PagePlan plan =
                                planPages(limits, hostMemory(bytes));
                        ASSERT_GE(plan.rowsPerPage, 1);
                        ASSERT_LE(plan.rowsPerPage, rows);
                        // Every page has a row, and none is left over.
                        ASSERT_GE(plan.pages * plan.rowsPerPage, rows);
                        ASSERT_LT((plan.pages - 1) * plan.rowsPerPage, rows);
                        if (plan.rowsPerPage > 1) {
                            ASSERT_LE(plan.rowsPerPage * bytes, kPageBytes);
                            ASSERT_LE(plan.rowsPerPage * work, kPageWork);
                            ASSERT_LE(
                                    plan.rowsPerPage * scratch, 4 * kPageBytes);
                        }
                        if (plan.pages > 1 && pageBytes <= rows * bytes &&
                            plan.rowsPerPage > 1) {
                            ASSERT_LE(
                                    plan.rowsPerPage * bytes,
                                    std::max(pageBytes, kMiB));
                        }
                    }
                }
            }
        }
    }
}

TEST(PagePlan, DeviceArraysAreOnePage) {
    PageLimits limits;
    limits.rows = std::numeric_limits<int>::max();
    limits.workPerRow = 1e15;
    limits.pageBytes = 1;
    const PagePlan plan = planPages(limits, PageMemory());
    EXPECT_EQ(plan.pages, 1);
    EXPECT_FALSE(plan.pinned);

    // FAISS counts a call's rows by int.
    limits.rows = idx_t(1) << 32;
    const PagePlan more = planPages(limits, PageMemory());
    EXPECT_EQ(more.pages, 3);
    EXPECT_LE(more.rowsPerPage, std::numeric_limits<int>::max());

    limits.rows = 1000000;
    limits.scratchBytesPerRow = 2048;
    EXPECT_EQ(planPages(limits, PageMemory()).pages, 31); // 64 MiB a page
}

TEST(PagePlan, NothingToDo) {
    const PagePlan plan = planPages(PageLimits(), hostMemory(100));
    EXPECT_EQ(plan.pages, 0);
    EXPECT_EQ(plan.rowsPerPage, 0);
}

TEST(PagePlan, PinnedMemoryOnlyIfTwoPagesFit) {
    PageLimits limits;
    limits.rows = 1000;
    const size_t row = kMiB / 4; // 64 rows a page
    EXPECT_TRUE(planPages(limits, hostMemory(row, 32 * kMiB)).pinned);
    EXPECT_FALSE(planPages(limits, hostMemory(row, 31 * kMiB)).pinned);
    EXPECT_FALSE(planPages(limits, hostMemory(row, 0)).pinned);
    // One page of less than 8 MiB goes without, and so does memory that is
    // pinned already.
    limits.rows = 31;
    EXPECT_FALSE(planPages(limits, hostMemory(row)).pinned);
    limits.rows = 32;
    EXPECT_EQ(planPages(limits, hostMemory(row)).pages, 1);
    EXPECT_TRUE(planPages(limits, hostMemory(row)).pinned);
    EXPECT_FALSE(planPages(limits, hostMemory(row, 15 * kMiB)).pinned);
    limits.rows = 1000;
    PageMemory memory = hostMemory(row);
    memory.pinnedBytesPerRow = 0;
    EXPECT_FALSE(planPages(limits, memory).pinned);
}

TEST(PagePlan, MoreStagingWhereTheCallerWantsIt) {
    PageLimits limits;
    limits.rows = 10240;
    const size_t row = 24512; // k = 2000, d = 128
    EXPECT_EQ(planPages(limits, hostMemory(row)).pages, 15);
    limits.mostStaging = 4 * kPageBytes;
    const PagePlan plan = planPages(limits, hostMemory(row));
    EXPECT_EQ(plan.pages, 4);
    EXPECT_EQ(plan.rowsPerPage, 2560);
    EXPECT_TRUE(plan.pinned);
    EXPECT_FALSE(planPages(limits, hostMemory(row, 64 * kMiB)).pinned);
    // What the index says holds as well.
    limits.pageBytes = kMiB;
    EXPECT_EQ(planPages(limits, hostMemory(row)).rowsPerPage, 42);
}

TEST(PagePlan, StagingOfSearches) {
    constexpr size_t kTemp = size_t(1) << 30;
    const size_t few = 632;    // k = 10, d = 128
    const size_t many = 24512; // k = 2000
    for (const idx_t rows : {1, 1024, 10240, 1000000}) {
        EXPECT_EQ(stagingOfSearch(rows, few, kTemp), kPageBytes);
    }
    // Eight pages at least, of 1,024 queries at most.
    EXPECT_EQ(stagingOfSearch(1024, many, kTemp), kPageBytes);
    EXPECT_EQ(stagingOfSearch(8 * 684, many, kTemp), kPageBytes);
    EXPECT_EQ(stagingOfSearch(8 * 685, many, kTemp), 685 * many);
    EXPECT_EQ(stagingOfSearch(8 * 1024, many, kTemp), 1024 * many);
    EXPECT_EQ(stagingOfSearch(1000000, many, kTemp), 1024 * many);
    EXPECT_EQ(stagingOfSearch(1000000, 10 * many, kTemp), 2 * kPageBytes);
    EXPECT_EQ(stagingOfSearch(1000000, many, 8 * 1024 * many), 1024 * many);
    EXPECT_EQ(stagingOfSearch(1000000, many, 8 * 1024 * many - 1), kPageBytes);
    EXPECT_EQ(stagingOfSearch(0, many, 0), kPageBytes);
}

/// n = 2^20, d = 128, k = 100, 100,000 queries: pages short enough to be
/// interrupted, and small enough that what does not overlap is little.
TEST(PagePlan, ALargeSearch) {
    PageLimits limits;
    limits.rows = 100000;
    limits.workPerRow = searchWork(1 << 20, 128, 100);
    const PagePlan plan =
            planPages(limits, hostMemory(128 * 4 + 100 * 12, 256 * kMiB));
    EXPECT_GE(plan.pages, 10);
    EXPECT_LE(plan.pages, 30);
    EXPECT_TRUE(plan.isLong);
    EXPECT_TRUE(plan.pinned);
    limits.rows = 1;
    EXPECT_FALSE(planPages(limits, hostMemory(1712)).isLong);
}

} // namespace
} // namespace faiss_bits::test
