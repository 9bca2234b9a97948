/// What scans of interleaved codes have of shared memory, and when queries
/// share them. Needs no device.

#include <gtest/gtest.h>

#include "kernels/ivf/IvfKnn.h"
#include "kernels/ivf/IvfStagedParams.h"
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
                    ASSERT_TRUE(areSharedWide(lists));
                    DeviceTraits device;
                    device.sharedBytes = sharedBytes;
                    const int bits = bitsOfCodes(lists);
                    const size_t dims = std::min(d, bits == 16 ? 64 : 128);
                    const size_t stage = IvfStagedPlan::wideStage(lists);
                    ASSERT_EQ(stage % 16, 0);
                    // 128 vectors, and a centroid.
                    ASSERT_GE(stage, dims * (16 * bits + (isResidual ? 4 : 0)));
                    // Queries in float64, steps and starts, keys and words.
                    const size_t padded = (d + 127) / 128 * 128;
                    const size_t tables = padded * (4 * 8 + 2 * 4) + 4096 + 32;
                    const IvfStagedPlan plan(
                            direct, device, stage, tables, 0, kIvfWideBlocks);
                    ASSERT_GE(plan.params.stages, 2);
                    ASSERT_LE(plan.params.stages, 3);
                    ASSERT_EQ(plan.params.stageBytes, stage);
                    ASSERT_EQ(
                            plan.params.allStages, plan.params.stages * stage);
                    ASSERT_GE(plan.blocks, 1);
                    ASSERT_LE(plan.blocks, kIvfWideBlocks);
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
    const size_t stage = IvfStagedPlan::wideStage(direct.search.lists);
    EXPECT_EQ(stage, 128 * 128);
    const IvfStagedPlan plan(direct, device, stage, 9248, 0, kIvfWideBlocks);
    EXPECT_EQ(plan.params.stages, 3);
    EXPECT_EQ(plan.blocks, kIvfWideBlocks);
}

TEST(IvfStagedPlan, QueriesShareCodesWhereThatTakesLess) {
    // 2^20 vectors of 128 components in 1,024 lists, by the expected times.
    struct Cell {
        int nprobe;
        idx_t numQueries;
        bool shared;
    };
    const float centroids = 0; // never read
    for (ListCoding coding : kStagedCodings) {
        for (const Cell& cell :
             {Cell{8, 1, false},
              Cell{128, 1, false},
              Cell{8, 4, false},
              Cell{128, 4, true},
              Cell{32, 16, true},
              Cell{128, 16, true},
              Cell{32, 64, true}}) {
            IvfKnnProblem p = someProblem();
            p.lists.coding = coding;
            p.nprobe = cell.nprobe;
            p.numQueries = cell.numQueries;
            p.longestList = 1280;
            p.mostVectors = p.longestList * cell.nprobe;
            p.centroids = &centroids;
            const IvfKnnPlan plan = planIvfKnn(p, size_t(448) << 20);
            ASSERT_TRUE(plan.direct) << cell.nprobe << " " << cell.numQueries
                                     << ": " << plan.toString();
            EXPECT_EQ(plan.direct->shared, cell.shared)
                    << cell.nprobe << " " << cell.numQueries;
        }
    }
}

} // namespace
} // namespace faiss_bits::test
