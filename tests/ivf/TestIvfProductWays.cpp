/// Which way a search of product codes goes, as the ways were measured. Needs
/// no device.

#include <gtest/gtest.h>

#include "kernels/ivf/IvfDirect.h"
#include "tests/ivf/IvfPlanProblem.h"

namespace faiss_bits::test {
namespace {

alignas(16) const float kCentroids = 0; // never read

/// What problemOf() needs, in the order of its cells.
struct ProductSearch {
    int parts;
    int d;
    idx_t vectors;
    idx_t numLists;
    int nprobe;
    idx_t numQueries;
};

/// Of product codes of residuals by rows; Cell has what ProductSearch has.
template <class Cell>
IvfKnnProblem problemOf(const Cell& cell) {
    IvfKnnProblem p = someProblem();
    p.lists.coding = ListCoding::Product;
    p.lists.layout = ListLayout::Rows;
    p.lists.decoding.numParts = cell.parts;
    p.lists.decoding.centroids = &kCentroids;
    p.lists.d = cell.d;
    p.lists.numLists = cell.numLists;
    p.lists.numVectors = cell.vectors;
    p.nprobe = cell.nprobe;
    p.numQueries = cell.numQueries;
    return p;
}

TEST(IvfProductWays, LongProductCodesOfUnevenListsGoByTables) {
    // Most queries meet in few lists, which estimates decode for every 64 of
    // them: 1.27 ms (h100/ivf_sweep.json, cell 70), expected of even lists were
    // 0.39, as of tables.
    IvfKnnProblem p = problemOf(ProductSearch{16, 512, 11079, 38, 3, 1819});
    p.k = 1;
    for (idx_t most : {5399, 8000, 11072}) { // 5,399 is the average query's
        p.longestList = most / 2;
        p.mostVectors = most;
        const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
        ASSERT_TRUE(plan.direct) << plan.toString();
        EXPECT_TRUE(plan.direct->byTables) << plan.toString();
    }
}

TEST(IvfProductWays, ProductCodesGoByTablesWhereThatWasFaster) {
    // By tables that queries share and without (docs/design/
    // ivf_few_queries_product.md, "Product codes by tables").
    struct Cell {
        int parts;
        int d;
        idx_t vectors;
        idx_t numLists;
        int nprobe;
        idx_t numQueries;
        int k;
        bool byTables;
    };
    for (const Cell& cell :
         {// Random cells.
          Cell{8, 256, 934064, 16, 2, 2, 28, true},
          Cell{8, 256, 934064, 16, 2, 212, 256, true},
          Cell{8, 256, 934064, 16, 3, 2, 128, true},
          Cell{8, 24, 262144, 128, 4, 7828, 5, false},
          // Wide tiles took 1.08 times as long as tables.
          Cell{24, 288, 131072, 490, 4, 2793, 249, false},
          Cell{24, 288, 131072, 490, 6, 256, 2, true},
          Cell{24, 288, 131072, 490, 58, 30, 19, true},
          Cell{16, 400, 39950, 25, 8, 2048, 45, true},
          Cell{16, 400, 39950, 25, 9, 4096, 10, true},
          Cell{16, 400, 39950, 25, 5, 10533, 2, true},
          // Uniform vectors, each way forced.
          Cell{24, 288, 131072, 512, 4, 16, 10, false},
          Cell{24, 288, 131072, 512, 4, 1024, 10, true},
          Cell{24, 288, 131072, 512, 4, 1024, 100, true},
          Cell{24, 288, 131072, 512, 4, 1024, 250, false},
          Cell{24, 288, 131072, 512, 4, 4096, 10, true},
          Cell{24, 288, 131072, 512, 4, 4096, 100, false},
          Cell{24, 288, 131072, 512, 32, 16, 250, false},
          Cell{24, 288, 131072, 512, 32, 128, 100, true},
          Cell{24, 288, 131072, 512, 32, 128, 500, true},
          Cell{24, 288, 131072, 512, 32, 1024, 10, true},
          Cell{24, 288, 131072, 512, 32, 1024, 250, false},
          Cell{24, 288, 131072, 512, 32, 4096, 10, true},
          Cell{16, 400, 40960, 32, 6, 128, 100, true},
          Cell{16, 400, 40960, 32, 6, 128, 500, true},
          Cell{16, 400, 40960, 32, 6, 2048, 10, true},
          Cell{16, 400, 40960, 32, 6, 2048, 250, false},
          Cell{16, 400, 40960, 32, 6, 8192, 10, true},
          Cell{16, 400, 40960, 32, 12, 128, 250, true},
          Cell{16, 400, 40960, 32, 12, 128, 500, false},
          Cell{16, 400, 40960, 32, 12, 2048, 100, true},
          Cell{16, 400, 40960, 32, 12, 2048, 250, true},
          Cell{16, 400, 40960, 32, 12, 2048, 500, false},
          Cell{8, 256, 524288, 16, 2, 2, 100, true},
          Cell{8, 256, 524288, 16, 2, 16, 500, true},
          Cell{8, 256, 524288, 16, 2, 212, 500, true},
          Cell{8, 256, 524288, 16, 2, 1024, 250, true},
          // More neighbours than the finish has room for.
          Cell{8, 256, 934064, 16, 2, 212, 2049, false},
          // What estimates decode in blocks, and a scan in float16.
          Cell{32, 128, 1 << 20, 1024, 32, 10240, 10, false},
          Cell{16, 128, 1 << 20, 1024, 32, 10240, 10, false},
          Cell{64, 128, 1 << 20, 1024, 32, 64, 10, false},
          Cell{16, 256, 1 << 20, 1024, 32, 64, 10, false},
          // One query shares no list.
          Cell{24, 288, 131072, 490, 6, 1, 2, false}}) {
        IvfKnnProblem p = problemOf(cell);
        p.k = cell.k;
        p.longestList = cell.vectors / cell.numLists * 5 / 4;
        p.mostVectors = p.longestList * cell.nprobe;
        const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
        const bool byTables =
                plan.direct && plan.direct->byTables && plan.direct->shared;
        EXPECT_EQ(byTables, cell.byTables)
                << cell.parts << " of " << cell.d << ", " << cell.numQueries
                << " queries, k=" << cell.k << ": " << plan.toString();
        EXPECT_LE(plan.bytes, size_t(448) << 20);
    }
}

/// Lists of 256 vectors fill wide tiles: 0.80 and 0.89 ms, 1.35 and 1.97 by
/// tables.
TEST(IvfProductWays, ListsThatFillWideTiles) {
    for (const int k : {10, 100}) {
        IvfKnnProblem p =
                problemOf(ProductSearch{24, 288, 131072, 512, 32, 4096});
        p.k = k;
        p.longestList = 256;
        p.mostVectors = p.longestList * p.nprobe;
        const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
        EXPECT_TRUE(plan.wideTiles) << plan.toString();
    }
}

TEST(IvfProductWays, QueriesByThemselvesHaveTablesOrNot) {
    struct Cell {
        int parts;
        int d;
        idx_t numLists;
        idx_t vectors;
        int nprobe;
        idx_t numQueries;
    };
    IvfKnnProblem p = problemOf(Cell{32, 128, 1024, 1 << 20, 32, 128});
    const auto isThere = [&](const IvfKnnProblem& of) {
        return planIvfDirectWay(of, size_t(448) << 20, false, false, true)
                .has_value();
    };
    EXPECT_TRUE(isThere(p));
    IvfKnnProblem other = p;
    other.numQueries = 129;
    EXPECT_FALSE(isThere(other));
    other = p;
    other.k = 128;
    EXPECT_TRUE(isThere(other));
    other.k = 129;
    EXPECT_FALSE(isThere(other));
    other = p;
    other.lists.coding = ListCoding::Float32;
    EXPECT_FALSE(isThere(other));
}

/// Each way forced, us: canonical distances by themselves, tables by
/// themselves, shared lists (docs/design/ivf_few_queries_alone.md).
TEST(IvfProductWays, QueriesByThemselvesTakeTablesWhereTheyPay) {
    enum Way { kCanonical, kTables, kShared };
    struct Cell {
        int parts;
        int nprobe;
        idx_t numQueries;
        int k;
        Way way;
    };
    for (const Cell& cell :
         {Cell{32, 8, 1, 10, kCanonical},    // 21.9, 25.7
          Cell{32, 8, 16, 10, kTables},      // 35.8, 30.2, 67.2
          Cell{32, 32, 1, 10, kCanonical},   // 23.7, 26.0
          Cell{32, 32, 1, 100, kCanonical},  // 29.3, 35.5
          Cell{32, 32, 4, 10, kTables},      // 33.5, 28.3, 70.7
          Cell{32, 32, 16, 10, kTables},     // 70.5, 39.5, 79.0
          Cell{32, 32, 32, 10, kTables},     // 117, 51.5, 106
          Cell{32, 128, 1, 10, kTables},     // 36.2, 30.6
          Cell{32, 128, 16, 10, kTables},    // 209, 72.2, 116
          Cell{64, 8, 1, 10, kCanonical},    // 22.4, 26.4
          Cell{64, 32, 8, 10, kTables},      // 52.0, 39.4, 71.8
          Cell{64, 32, 32, 10, kTables},     // 132, 69.8, 108
          Cell{64, 128, 8, 10, kTables},     // 133, 70.6, 106
          Cell{32, 32, 64, 10, kTables},     // 210, 73.6, 117
          Cell{32, 128, 64, 10, kShared},    // 752, 190, 176
          Cell{64, 8, 64, 10, kTables},      // 82.3, 53.9, 84.2
          Cell{64, 32, 64, 10, kTables},     // 240, 108, 122
          Cell{64, 128, 64, 10, kShared}}) { // 862, 322, 188
        struct {
            int parts, d;
            idx_t numLists, vectors;
            int nprobe;
            idx_t numQueries;
        } shape{cell.parts, 128, 1024, 1 << 20, cell.nprobe, cell.numQueries};
        IvfKnnProblem p = problemOf(shape);
        p.k = cell.k;
        // Of the longest lists, as chance had them.
        p.mostVectors = cell.nprobe == 8 ? 8846
                : cell.nprobe == 32      ? 34970
                                         : 137845;
        const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
        ASSERT_TRUE(plan.direct) << plan.toString();
        EXPECT_EQ(plan.direct->shared, cell.way == kShared)
                << cell.parts << " parts: " << plan.toString();
        EXPECT_EQ(
                plan.direct->byTables && !plan.direct->shared,
                cell.way == kTables)
                << cell.parts << " parts: " << plan.toString();
    }
}

/// The longest of 25 lists has 6,968 vectors of 39,950, and all probed lists of
/// a query have up to 34,311. Tables took 0.375 ms when forced, and 0.381 as
/// the plan had it; tiles 0.495, with the finish of that time.
TEST(IvfProductWays, ProductCodesOfUnevenListsGoByTables) {
    const float centroids = 0; // never read
    IvfKnnProblem p = someProblem();
    p.lists.coding = ListCoding::Product;
    p.lists.layout = ListLayout::Rows;
    p.lists.decoding.numParts = 16;
    p.lists.d = 400;
    p.lists.numLists = 25;
    p.lists.numVectors = 39950;
    p.nprobe = 11;
    p.numQueries = 119;
    p.k = 484;
    p.longestList = 6968;
    p.mostVectors = 34311;
    p.centroids = &centroids;
    const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
    EXPECT_TRUE(plan.direct && plan.direct->byTables) << plan.toString();
    EXPECT_TRUE(plan.findsLists()) << plan.toString();
}

/// A table is made for each query and list, so that where lists are many and
/// short, queries read them by themselves.
TEST(IvfProductWays, ProductCodesOfShortListsGoByStreams) {
    struct Cell {
        int parts;
        int d;
        idx_t vectors;
        idx_t numLists;
        int nprobe;
        idx_t numQueries;
    };
    for (const Cell& cell :
         {Cell{16, 400, 1 << 20, 65536, 8, 4096},
          Cell{16, 400, 1 << 20, 65536, 4, 10000},
          Cell{16, 400, 40000, 65536, 16, 4000},
          Cell{48, 960, 40000, 65536, 16, 4000}}) {
        IvfKnnProblem p = problemOf(cell);
        p.longestList = cell.vectors / cell.numLists + 1;
        p.mostVectors = p.longestList * cell.nprobe;
        for (bool mayWait : {false, true}) {
            p.mayWait = mayWait;
            const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
            EXPECT_FALSE(plan.direct || plan.listMajor)
                    << cell.parts << " of " << cell.d << ", " << cell.numLists
                    << " lists: " << plan.toString();
        }
    }
}

/// A part of the queries at a time, of which the last may sort its pairs
/// another way, and needs no more scratch than is planned.
TEST(IvfProductWays, QueriesByTablesComeInParts) {
    IvfKnnProblem p = someProblem();
    p.lists.coding = ListCoding::Product;
    p.lists.layout = ListLayout::Rows;
    p.lists.d = 400;
    p.lists.decoding.numParts = 16;
    p.lists.numLists = 25;
    p.lists.numVectors = 39950;
    p.nprobe = 5;
    p.k = 2;
    p.longestList = 9000;
    p.mostVectors = 30000;
    for (idx_t queries : {2, 256, 257, 2047, 10533, 100000}) {
        p.numQueries = queries;
        size_t before = 0;
        for (size_t mostBytes : {64 << 20, 200 << 20, 448 << 20}) {
            const auto plan = planIvfDirectWay(p, mostBytes, false, true, true);
            ASSERT_TRUE(plan) << queries;
            EXPECT_LE(plan->bytes, mostBytes);
            EXPECT_LE(plan->rowsAtATime, queries);
            EXPECT_GE(plan->bytes, before);
            EXPECT_GE(
                    plan->bytes,
                    size_t(plan->stride) * 4 * size_t(plan->rowsAtATime));
            before = plan->bytes;
        }
    }
    // Parts of fewer would read the codebook too often.
    p.numQueries = 10533;
    EXPECT_FALSE(planIvfDirectWay(p, 16 << 20, false, true, true));
}

} // namespace
} // namespace faiss_bits::test
