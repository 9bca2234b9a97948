/// What scans of interleaved codes have of shared memory, and when queries
/// share them. Needs no device.

#include <gtest/gtest.h>

#include "kernels/ivf/IvfDirect.h"
#include "kernels/ivf/IvfFloors.h"
#include "kernels/ivf/IvfKnn.h"
#include "kernels/ivf/IvfStagedParams.h"
#include "kernels/ivf/IvfTimes.h"
#include "tests/ivf/IvfPlanProblem.h"

namespace faiss_bits::test {
namespace {

constexpr ListCoding kStagedCodings[] = {
        ListCoding::Float16,
        ListCoding::Scalar8,
        ListCoding::Scalar6,
        ListCoding::Scalar4};

TEST(IvfStagedPlan, SharedListsFitEveryDevice) {
    // Shared memory of a multiprocessor: V100, A100, H100. A block may have
    // 1 KiB less.
    for (size_t sharedBytes : {98304, 167936, 233472}) {
        for (ListCoding coding : kStagedCodings) {
            for (bool isResidual : {false, true}) {
                for (int d = 33; d <= kMostSharedDims; ++d) {
                    IvfDirectParams direct;
                    IvfLists& lists = direct.search.lists;
                    const float centroids = 0; // never read
                    lists.coding = coding;
                    lists.d = d;
                    lists.decoding.centroids =
                            isResidual ? &centroids : nullptr;
                    ASSERT_TRUE(areSharedByFours(lists));
                    DeviceTraits device;
                    device.sharedBytes = sharedBytes;
                    const int bits = bitsOfCodes(lists);
                    const size_t dims = std::min(d, bits == 16 ? 64 : 128);
                    const size_t stage = IvfStagedPlan::foursStage(lists);
                    ASSERT_EQ(stage % 16, 0);
                    // 128 vectors, and a centroid.
                    ASSERT_GE(stage, dims * (16 * bits + (isResidual ? 4 : 0)));
                    // Queries in float64, steps and starts, keys and words.
                    const size_t padded = (d + 127) / 128 * 128;
                    const size_t tables = padded * (4 * 8 + 2 * 4) + 4096 + 32;
                    const IvfStagedPlan plan(
                            direct, device, stage, tables, 0, kIvfFoursBlocks);
                    ASSERT_GE(plan.params.stages, 2);
                    ASSERT_LE(plan.params.stages, 3);
                    ASSERT_EQ(plan.params.stageBytes, stage);
                    ASSERT_EQ(
                            plan.params.allStages, plan.params.stages * stage);
                    ASSERT_GE(plan.blocks, 1);
                    ASSERT_LE(plan.blocks, kIvfFoursBlocks);
                    ASSERT_LE(plan.blocks * (plan.bytes + 1024), sharedBytes)
                            << int(coding) << " " << d;
                }
            }
        }
    }
}

TEST(IvfStagedPlan, EightBitsOf128FillAnH100) {
    IvfDirectParams direct;
    direct.search.lists.coding = ListCoding::Scalar8;
    direct.search.lists.d = 128;
    DeviceTraits device;
    device.sharedBytes = 233472;
    const size_t stage = IvfStagedPlan::foursStage(direct.search.lists);
    EXPECT_EQ(stage, 128 * 128);
    const IvfStagedPlan plan(direct, device, stage, 9248, 0, kIvfFoursBlocks);
    EXPECT_EQ(plan.params.stages, 3);
    EXPECT_EQ(plan.blocks, kIvfFoursBlocks);
}

TEST(IvfStagedPlan, QueriesShareCodesWhereThatTookLess) {
    // Each way forced (docs/design/ivf_few_queries.md, "Interleaved codes
    // through shared memory"). Beyond 2,000 pairs of a query and a list
    // estimates come in between.
    struct Cell {
        ListCoding coding;
        int d;
        idx_t numLists;
        int nprobe;
        idx_t numQueries;
        bool shared;
    };
    constexpr ListCoding kScalar = ListCoding::Scalar8;
    constexpr ListCoding kHalf = ListCoding::Float16;
    const float centroids = 0; // never read
    for (const Cell& cell :
         {Cell{kScalar, 128, 1024, 8, 1, false},
          Cell{kScalar, 128, 1024, 128, 1, false},
          Cell{kScalar, 128, 1024, 8, 4, false},
          Cell{kScalar, 128, 1024, 8, 16, false},
          Cell{kScalar, 128, 1024, 8, 64, true},
          Cell{kScalar, 128, 1024, 32, 4, false},
          Cell{kScalar, 128, 1024, 32, 16, true},
          Cell{kScalar, 128, 1024, 32, 64, true},
          Cell{kScalar, 128, 1024, 128, 2, false},
          Cell{kScalar, 128, 1024, 128, 4, true},
          Cell{kScalar, 128, 1024, 128, 16, true},
          Cell{kScalar, 128, 4096, 8, 64, false},
          Cell{kScalar, 128, 4096, 32, 16, false},
          Cell{kScalar, 128, 4096, 128, 4, false},
          Cell{kScalar, 128, 4096, 128, 64, true},
          Cell{kScalar, 128, 256, 2, 16, false},
          Cell{kScalar, 128, 256, 8, 4, false},
          Cell{kScalar, 128, 256, 8, 16, true},
          Cell{kScalar, 128, 256, 32, 4, true},
          Cell{kScalar, 64, 1024, 8, 4, false},
          Cell{kScalar, 64, 1024, 32, 4, false},
          Cell{kScalar, 64, 1024, 32, 16, true},
          Cell{kScalar, 64, 1024, 128, 16, true},
          Cell{kHalf, 128, 1024, 8, 16, false},
          Cell{kHalf, 128, 1024, 32, 4, false},
          Cell{kHalf, 128, 1024, 32, 16, false},
          Cell{kHalf, 128, 1024, 128, 4, false},
          Cell{kHalf, 128, 1024, 128, 16, true},
          Cell{kHalf, 128, 1024, 8, 256, true}}) {
        IvfKnnProblem p = someProblem();
        p.lists.coding = cell.coding;
        p.lists.layout = ListLayout::Interleaved;
        p.lists.d = cell.d;
        p.lists.numLists = cell.numLists;
        p.nprobe = cell.nprobe;
        p.numQueries = cell.numQueries;
        // As the lists of uniform vectors are.
        p.longestList = p.lists.numVectors / cell.numLists * 8 / 7;
        p.mostVectors = p.longestList * cell.nprobe;
        p.centroids = &centroids;
        p.k = 129; // canonical distances of all, and a selection
        const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
        const ::testing::Message text = ::testing::Message()
                << int(cell.coding) << " d=" << cell.d << ", " << cell.nprobe
                << " of " << cell.numLists << " lists, " << cell.numQueries
                << " queries: " << plan.toString();
        ASSERT_TRUE(plan.direct) << text;
        EXPECT_EQ(plan.direct->shared, cell.shared) << text;
        // By estimates in float32 queries by themselves took less.
        for (int k : {10, 100}) {
            p.k = k;
            if (hasIvfCodeFloors(p.lists, p.numQueries, p.mostVectors, p.k)) {
                const IvfKnnPlan floors = planIvfKnn(p, size_t(448) << 20);
                ASSERT_TRUE(floors.direct) << text << " k=" << k;
                EXPECT_FALSE(floors.direct->shared) << text << " k=" << k;
            }
        }
    }
}

TEST(IvfStagedPlan, ManyNeighboursGoByEstimatesWhereThatTookLess) {
    // Queries by themselves (docs/design/ivf_few_queries_alone.md, "An estimate
    // of every vector"), each way forced.
    struct Cell {
        int nprobe;
        idx_t numQueries;
        int k;
        bool byFloors;
    };
    for (const Cell& cell :
         {Cell{8, 1, 100, false},
          Cell{8, 4, 100, false},
          Cell{8, 16, 100, true},
          Cell{32, 1, 10, true},
          Cell{32, 1, 100, false},
          Cell{32, 2, 100, true},
          Cell{32, 4, 100, true},
          Cell{32, 16, 128, true},
          Cell{32, 16, 129, false},
          Cell{32, 128, 10, true},
          Cell{32, 129, 10, false},
          Cell{128, 1, 100, true},
          Cell{128, 3, 64, true}}) {
        IvfKnnProblem p = someProblem();
        p.lists.coding = ListCoding::Scalar8;
        p.lists.layout = ListLayout::Interleaved;
        EXPECT_EQ(
                hasIvfCodeFloors(
                        p.lists,
                        cell.numQueries,
                        idx_t(1130) * cell.nprobe,
                        cell.k),
                cell.byFloors)
                << cell.nprobe << " lists, " << cell.numQueries
                << " queries, k=" << cell.k;
    }
}

TEST(IvfStagedPlan, FiltersCostQueriesThatShareMore) {
    // The bits of all vectors are made first, and queries by themselves test
    // what they probe.
    const auto time = [](bool shared, int nprobe, bool hasTest) {
        IvfKnnProblem p = someProblem();
        p.lists.coding = ListCoding::Scalar8;
        p.lists.layout = ListLayout::Interleaved;
        p.numQueries = 4;
        p.nprobe = nprobe;
        p.k = 129; // the same scan with a test and without
        p.mostVectors = 1170 * nprobe;
        if (hasTest) {
            p.lists.idTest.kind = ListIdTest::Kind::Range;
        }
        IvfDirectPlan plan;
        plan.shared = shared;
        return ivf_times::ofDirect(plan, p);
    };
    for (int nprobe : {8, 32, 128}) {
        for (bool shared : {false, true}) {
            const double less = time(shared, nprobe, false);
            const double more = time(shared, nprobe, true);
            EXPECT_GT(more, less) << nprobe;
            EXPECT_LT(more - less, 30e-6) << nprobe;
        }
    }
    EXPECT_LT(time(false, 32, true), time(true, 32, true));
}

/// Whose estimates have no kernel for few queries a list: a random cell of 284
/// queries took 0.352 ms by these (h200/ivf_sweep.json, cell 49).
TEST(IvfStagedPlan, SomeMoreQueriesShareCodes) {
    const float centroids = 0; // never read
    IvfKnnProblem p = someProblem();
    p.lists.coding = ListCoding::Scalar6;
    p.lists.layout = ListLayout::Interleaved;
    p.lists.decoding.centroids = &centroids;
    p.lists.d = 366;
    p.lists.numLists = 239;
    p.lists.numVectors = 10255;
    p.numQueries = 284;
    p.nprobe = 4;
    p.k = 1;
    p.longestList = 800;
    p.mostVectors = 2000;
    const auto isShared = [](const IvfKnnProblem& of) {
        return planIvfDirectWay(of, size_t(448) << 20, false, true).has_value();
    };
    const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
    EXPECT_TRUE(plan.direct && plan.direct->shared) << plan.toString();
    p.numQueries = 512;
    EXPECT_TRUE(isShared(p));
    p.numQueries = 513;
    EXPECT_FALSE(isShared(p));
    p.numQueries = 257;
    for (ListCoding coding : kStagedCodings) {
        p.lists.coding = coding;
        for (int d : {33, 128, 129}) {
            p.lists.d = d;
            EXPECT_EQ(isShared(p), d == 129 || coding != ListCoding::Scalar8)
                    << int(coding) << " " << d;
        }
    }
}

} // namespace
} // namespace faiss_bits::test
