/// Which way a search of inverted lists goes, as the ways were measured. Needs
/// no device.

#include <gtest/gtest.h>

#include "kernels/ivf/IvfDirect.h"
#include "tests/ivf/IvfPlanProblem.h"

namespace faiss_bits::test {
namespace {

TEST(IvfWays, WhatDecodingCostsDecides) {
    // As the ways were measured, each forced:
    // docs/design/ivf_many_queries.md, "Expected times". Of codes, 10,240
    // queries and 8 lists: by arithmetic, since parts of lists set limits, and
    // of product codes since a few of a row's bounds are found sooner; 128
    // queries of scalar codes: docs/design/ivf_few_queries_alone.md.
    enum Way { Direct, All, Near }; // Direct: or by streams
    struct Cell {
        ListCoding coding;
        int numParts;
        idx_t numLists;
        int nprobe;
        idx_t numQueries;
        Way way;
    };
    constexpr ListCoding kScalar = ListCoding::Scalar8;
    constexpr ListCoding kHalf = ListCoding::Float16;
    constexpr ListCoding kProduct = ListCoding::Product;
    for (const Cell& cell :
         {Cell{ListCoding::Float32, 0, 1024, 8, 128, Direct},
          Cell{ListCoding::Float32, 0, 1024, 8, 1024, All},
          Cell{ListCoding::Float32, 0, 4096, 8, 1024, All},
          Cell{ListCoding::Float32, 0, 4096, 32, 1024, All},
          Cell{ListCoding::Float32, 0, 1024, 8, 10240, Near},
          Cell{ListCoding::Float32, 0, 1024, 32, 10240, Near},
          Cell{kScalar, 0, 1024, 8, 128, Direct},
          Cell{kScalar, 0, 1024, 8, 256, All},
          Cell{kScalar, 0, 1024, 32, 128, All},
          Cell{kScalar, 0, 1024, 8, 1024, All},
          Cell{kScalar, 0, 4096, 2, 512, Direct},
          Cell{kScalar, 0, 4096, 2, 2048, All},
          Cell{kScalar, 0, 4096, 8, 512, All},
          Cell{kScalar, 0, 4096, 8, 1024, All},
          Cell{kScalar, 0, 4096, 32, 256, All},
          Cell{kScalar, 0, 4096, 32, 1024, All},
          Cell{kScalar, 0, 1024, 8, 10240, Near},
          Cell{kScalar, 0, 4096, 32, 10240, All},
          Cell{kScalar, 0, 1024, 32, 10240, Near},
          Cell{kHalf, 0, 1024, 32, 64, Direct},
          Cell{kHalf, 0, 1024, 32, 128, All},
          Cell{kHalf, 0, 1024, 128, 64, All},
          Cell{kProduct, 32, 1024, 8, 1024, Direct},
          Cell{kProduct, 32, 4096, 8, 1024, Direct},
          Cell{kProduct, 64, 1024, 8, 128, Direct},
          Cell{kProduct, 64, 1024, 8, 1024, Direct},
          Cell{kProduct, 64, 4096, 8, 4096, Direct},
          Cell{kProduct, 64, 4096, 8, 1024, Direct},
          Cell{kProduct, 64, 4096, 32, 1024, Direct},
          Cell{kProduct, 64, 1024, 8, 10240, All},
          Cell{kProduct, 64, 1024, 32, 10240, Near}}) {
        IvfKnnProblem p = someProblem();
        p.lists.coding = cell.coding;
        p.lists.layout = cell.coding == kProduct ? ListLayout::Rows
                                                 : ListLayout::Interleaved;
        p.lists.decoding.numParts = cell.numParts;
        p.lists.numLists = cell.numLists;
        p.nprobe = cell.nprobe;
        p.numQueries = cell.numQueries;
        // Of uniform vectors.
        p.longestList = p.lists.numVectors / cell.numLists * 5 / 4;
        p.mostVectors = p.longestList * cell.nprobe;
        const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
        const Way way = !plan.byEstimates() ? Direct
                : plan.room > 0             ? Near
                                            : All;
        EXPECT_EQ(way, cell.way)
                << int(cell.coding) << " " << cell.numParts << " "
                << cell.numLists << " " << cell.nprobe << " " << cell.numQueries
                << ": " << plan.toString();
        EXPECT_EQ(plan.listMajor, plan.byEstimates());
        p.mayWait = false;
        EXPECT_FALSE(planIvfKnn(p, size_t(448) << 20).byEstimates());
    }
}

TEST(IvfWays, ManyNeighboursGoTheWayThatWasMeasured) {
    // Float32, each way forced (docs/design/ivf_many_queries.md, "Expected
    // times").
    enum Way { Other, All, Near };
    struct Cell {
        idx_t numLists;
        int nprobe;
        idx_t numQueries;
        int k;
        Way way;
    };
    for (const Cell& cell :
         {Cell{1024, 8, 1024, 100, All},
          Cell{1024, 8, 1024, 1000, All},
          Cell{1024, 8, 10240, 1000, Other},
          Cell{1024, 32, 1024, 1000, All},
          Cell{1024, 32, 10240, 100, Near},
          Cell{1024, 32, 10240, 1000, Near},
          Cell{1024, 128, 10240, 1000, Near},
          Cell{4096, 8, 1024, 1000, Other},
          Cell{4096, 8, 10240, 100, All},
          // Not 4096, 128, 10240, 1000: its selections take less time since.
          Cell{4096, 32, 1024, 1000, All}}) {
        IvfKnnProblem p = someProblem();
        p.lists.numLists = cell.numLists;
        p.nprobe = cell.nprobe;
        p.numQueries = cell.numQueries;
        p.k = cell.k;
        p.longestList = p.lists.numVectors / cell.numLists * 5 / 4;
        p.mostVectors = p.longestList * cell.nprobe;
        const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
        const Way way = !plan.byEstimates() ? Other
                : plan.room > 0             ? Near
                                            : All;
        EXPECT_EQ(way, cell.way)
                << cell.numLists << " " << cell.nprobe << " " << cell.numQueries
                << " " << cell.k << ": " << plan.toString();
    }
}

TEST(IvfWays, ListsOfUniformVectorsGoAsEvenOnesDo) {
    // As k-means makes 1,024 lists of 2^20 uniform vectors, 1,134 in each of
    // the longest 32: six parts of the queries with bounds of all lists take
    // longer than two with limits (docs/design/ivf_measured.md).
    IvfKnnProblem p = someProblem();
    p.k = 1000;
    for (idx_t most : {1100, 1134, 1170, 1210, 1280}) {
        p.longestList = most * 21 / 20;
        p.mostVectors = most * p.nprobe;
        const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
        EXPECT_GT(plan.room, 0) << most << ": " << plan.toString();
        EXPECT_EQ(plan.rowsAtATime, p.numQueries / 2) << plan.toString();
    }
}

TEST(IvfWays, FewQueriesGoDirect) {
    // Float32 lists, as they were measured (docs/design/ivf_few_queries.md):
    // what is shared takes longer to begin.
    struct Cell {
        idx_t numLists;
        int nprobe;
        idx_t numQueries;
        bool shared;
    };
    const float centroids = 0; // never read
    for (const Cell& cell :
         {Cell{1024, 8, 1, false},
          Cell{1024, 128, 1, false},
          Cell{1024, 32, 4, false},
          Cell{1024, 8, 16, false},
          Cell{1024, 128, 16, true},
          Cell{1024, 32, 64, true},
          Cell{4096, 32, 1, false},
          Cell{4096, 8, 16, false}}) {
        for (int k : {1, 128, 129, 1000}) {
            IvfKnnProblem p = someProblem();
            p.lists.numLists = cell.numLists;
            p.nprobe = cell.nprobe;
            p.numQueries = cell.numQueries;
            p.k = k;
            p.longestList = p.lists.numVectors / cell.numLists * 5 / 4;
            p.mostVectors = p.longestList * cell.nprobe;
            for (bool finds : {false, true}) {
                p.centroids = finds ? &centroids : nullptr;
                const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
                ASSERT_TRUE(plan.direct) << plan.toString();
                EXPECT_EQ(plan.direct->shared, cell.shared) << plan.toString();
                EXPECT_EQ(plan.direct->selects, k > 128);
                EXPECT_EQ(plan.findsLists(), finds);
                EXPECT_EQ(plan.bytes, plan.direct->bytes);
            }
            // More lists than a search finds itself.
            p.lists.numLists = 4097;
            p.centroids = &centroids;
            EXPECT_FALSE(planIvfKnn(p, size_t(448) << 20).findsLists());
        }
    }
}

TEST(IvfWays, FewQueriesShareListsWhereThatTookLess) {
    // Of 2^20 x 128 (docs/design/ivf_few_queries.md, "Queries by themselves in
    // float32"), each way forced.
    struct Cell {
        int parts; // 0: float32
        idx_t numLists;
        int nprobe;
        idx_t numQueries;
        int k;
        bool shared;
    };
    const float centroids = 0; // never read
    for (const Cell& cell :
         {Cell{0, 1024, 32, 4, 10, false},
          Cell{0, 1024, 32, 16, 10, false},
          Cell{0, 1024, 32, 63, 10, true},
          Cell{0, 1024, 128, 4, 10, false},
          Cell{0, 1024, 128, 16, 10, true},
          Cell{0, 4096, 128, 16, 10, false},
          Cell{0, 256, 8, 16, 10, false},
          Cell{32, 1024, 32, 16, 10, false},
          Cell{32, 1024, 32, 32, 10, false},
          Cell{32, 1024, 32, 63, 10, false},
          Cell{32, 4096, 32, 16, 10, false},
          Cell{32, 4096, 128, 16, 10, false},
          Cell{64, 1024, 32, 8, 10, false},
          Cell{64, 1024, 32, 16, 10, false},
          Cell{64, 1024, 128, 16, 10, false},
          Cell{64, 1024, 128, 63, 10, true},
          Cell{64, 4096, 32, 16, 10, false}}) {
        IvfKnnProblem p = someProblem();
        p.lists.numLists = cell.numLists;
        p.centroids = &centroids;
        p.nprobe = cell.nprobe;
        p.numQueries = cell.numQueries;
        p.k = cell.k;
        if (cell.parts > 0) {
            p.lists.coding = ListCoding::Product;
            p.lists.layout = ListLayout::Rows;
            p.lists.decoding.numParts = cell.parts;
        }
        p.longestList = p.lists.numVectors / cell.numLists * 17 / 16;
        p.mostVectors = p.longestList * cell.nprobe;
        const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
        ASSERT_TRUE(plan.direct) << plan.toString();
        EXPECT_EQ(plan.direct->shared, cell.shared)
                << cell.parts << " parts, " << cell.nprobe << " of "
                << cell.numLists << " lists, " << cell.numQueries
                << " queries: " << plan.toString();
    }
}

TEST(IvfWays, RangesKeepAllDistances) {
    IvfKnnProblem p = someProblem();
    p.numQueries = 1;
    EXPECT_TRUE(planIvfKnn(p, size_t(448) << 20).direct);
    EXPECT_FALSE(planIvfDistances(p, size_t(448) << 20).direct);
}

} // namespace
} // namespace faiss_bits::test
