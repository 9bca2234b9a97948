/// The plans of SampleThreshold and bits over a sweep of shapes, types and
/// devices. None makes a CUDA call.

#include <algorithm>
#include <climits>

#include <gtest/gtest.h>

#include "kernels/select/SelectTable.h"
#include "kernels/select/bits/BitsPlan.h"
#include "kernels/select/bits/BitsPolicy.h"
#include "kernels/select/threshold/HeldPlan.h"
#include "kernels/select/threshold/ThresholdParams.h"
#include "kernels/survivors/SurvivorSort.h"
#include "tests/select/OnH200.h"

namespace faiss_bits::test {
namespace {

struct Shared {
    int computeCapability;
    int multiprocessors;
    size_t kilobytes; // of a multiprocessor
};

/// H200, A100, L40, a small one, and one of the largest number of parts.
constexpr Shared kDevices[] = {
        {90, 132, 228},
        {80, 108, 164},
        {89, 142, 100},
        {75, 20, 64},
        {120, 1000, 100}};

DeviceTraits traitsOf(const Shared& d) {
    return {d.computeCapability,
            d.multiprocessors,
            d.kilobytes * 1024,
            (d.kilobytes - 1) * 1024};
}

const std::vector<idx_t> kRows = {1, 3, 22, 132, 133, 1000, 30000, 10000000};
const std::vector<idx_t> kCols = {
        0,
        1,
        2048,
        2049,
        16384,
        70000,
        idx_t(1) << 17,
        idx_t(1) << 19,
        idx_t(1) << 24,
        idx_t(1) << 31,
        kMaxSelectCols};
const std::vector<int> kKs = {
        1,
        32,
        33,
        128,
        129,
        256,
        257,
        512,
        513,
        1024,
        1025,
        2048,
        2049,
        100000,
        1 << 24,
        1 << 30,
        INT_MAX};

template <class Visit>
void forEachShape(Visit visit) {
    for (const Shared& device : kDevices) {
        for (idx_t rows : kRows) {
            for (idx_t cols : kCols) {
                for (int k : kKs) {
                    for (DataType type :
                         {DataType::Float32, DataType::Float16}) {
                        SelectProblem p;
                        p.rows = rows;
                        p.cols = cols;
                        p.k = k;
                        p.keyType = type;
                        p.device = traitsOf(device);
                        SCOPED_TRACE(
                                std::to_string(rows) + " x " +
                                std::to_string(cols) +
                                " k=" + std::to_string(k) + " sm_" +
                                std::to_string(device.computeCapability));
                        visit(p);
                        if (::testing::Test::HasFailure()) {
                            return;
                        }
                    }
                }
            }
        }
    }
}

TEST(ThresholdPlans, NameAPolicyOfTheList) {
    forEachShape([](const SelectProblem& p) {
        const ThresholdPlan plan = planThreshold(p);
        if (!plan.fused && !plan.isCluster && p.k > kMaxSelectK) {
            EXPECT_EQ(plan.policy.room, 0);
            EXPECT_NE(
                    plan.toString().find("sorted in memory"),
                    plan.toString().npos);
            return;
        }
        const std::span<const ThresholdPolicy> list = plan.isHeld
                ? std::span<const ThresholdPolicy>(kHeldRowsPolicies)
                : plan.isCluster
                ? std::span<const ThresholdPolicy>(kClusterRowsPolicies)
                : plan.isComb
                ? std::span<const ThresholdPolicy>(kCombRowsPolicies)
                : plan.fused
                ? std::span<const ThresholdPolicy>(kWholeRowsPolicies)
                : std::span<const ThresholdPolicy>(kFinishRowsPolicies);
        EXPECT_NE(std::find(list.begin(), list.end(), plan.policy), list.end())
                << plan.toString();
        EXPECT_GE(plan.policy.room, p.k);
        EXPECT_NE(
                plan.toString().find(plan.policy.toString()),
                std::string::npos);
    });
}

/// Every policy is somebody's choice, or it is compiled for nothing.
TEST(ThresholdPlans, TakeEveryPolicy) {
    std::vector<ThresholdPolicy> taken;
    forEachShape([&](const SelectProblem& p) {
        taken.push_back(planThreshold(p).policy);
    });
    for (const auto& list :
         {std::span<const ThresholdPolicy>(kWholeRowsPolicies),
          std::span<const ThresholdPolicy>(kCombRowsPolicies),
          std::span<const ThresholdPolicy>(kHeldRowsPolicies),
          std::span<const ThresholdPolicy>(kFinishRowsPolicies)}) {
        for (const ThresholdPolicy& one : list) {
            EXPECT_NE(std::find(taken.begin(), taken.end(), one), taken.end())
                    << one.toString();
        }
    }
}

/// What a list of survivors may have room for, kernels and sort agree on; the
/// longest ones are beyond 2^31.
TEST(ThresholdPlans, CapacitiesAreWithinTheSortsLimit) {
    uint32_t most = 0;
    forEachShape([&](const SelectProblem& p) {
        const ThresholdPlan plan = planThreshold(p);
        EXPECT_GE(plan.capacity, std::min<idx_t>(p.k, p.cols));
        EXPECT_GE(plan.capacity, 1u);
        EXPECT_LE(plan.capacity, kMaxSurvivors);
        EXPECT_LE(plan.expected, plan.capacity);
        if (plan.isCluster) {
            EXPECT_GE(
                    uint64_t(plan.sampleParts) * plan.segment,
                    uint64_t(p.cols));
            EXPECT_GE(plan.capacity, p.k + kLeastFusedRoom);
            EXPECT_LE(
                    idx_t(plan.sampleParts) * p.rows, p.device.multiprocessors);
            EXPECT_GE(p.device.computeCapability, 90);
            EXPECT_GE(p.device.blockSharedBytes, 128u * 1024);
        } else if (plan.isHeld) {
            EXPECT_LE(p.k, 1024);
            EXPECT_LE(plan.segment, 512u * kMostHeldItems);
            EXPECT_GE(
                    uint64_t(plan.sampleParts) * plan.segment,
                    uint64_t(p.cols));
            // Every block but the last has columns for all of its groups.
            EXPECT_LT(
                    uint64_t(plan.sampleParts - 1) * plan.segment,
                    uint64_t(p.cols));
            EXPECT_GE(plan.segment * plan.sampleParts, 1024u);
            EXPECT_GT(plan.capacity, uint32_t(p.k));
            EXPECT_GE(plan.capacity * plan.sampleParts, 2048u);
            EXPECT_LE(
                    kHeldStorageBytes + 16 * plan.policy.room +
                            8 * plan.capacity * plan.sampleParts,
                    p.device.blockSharedBytes);
            EXPECT_TRUE(
                    plan.sampleParts == 1 || p.device.computeCapability >= 90);
        } else if (!plan.fused && !plan.isComb) {
            EXPECT_GE(plan.batchRows, 1);
            EXPECT_NO_THROW(
                    survivorSortWorkspaceBytes(plan.batchRows, plan.capacity));
            EXPECT_GE(uint64_t(plan.splits) * plan.segment, uint64_t(p.cols));
            EXPECT_EQ(plan.lastBlocks & (plan.lastBlocks - 1), 0u);
            EXPECT_GE(plan.lastBlocks, 1u);
            EXPECT_LE(
                    int(plan.lastBlocks),
                    p.device.computeCapability < 90
                            ? 1
                            : std::min(
                                      mostClusterBlocks(p.device),
                                      p.device.multiprocessors));
        }
        most = std::max(most, plan.capacity);
    });
    EXPECT_GT(most, 1u << 31);
    EXPECT_THROW(survivorSortWorkspaceBytes(1, kMaxSurvivors + 1), Error);
}

/// What a fused block keeps fits the device that it is planned for, with the 13
/// KiB that it wants besides; of k > 2048 with what sorting takes.
TEST(ThresholdPlans, FitTheDevicesSharedMemory) {
    size_t large = 0;
    const auto expectFits = [&](const SelectProblem& p) {
        const ThresholdPlan plan = planThreshold(p);
        const bool isLarge = p.k > kMaxSelectK;
        if (!plan.fused ||
            (!isLarge && (p.cols <= 2048 || p.cols <= 2 * idx_t(p.k)))) {
            return; // every column is kept: at most 4096
        }
        large += isLarge;
        const size_t room = size_t(plan.policy.room);
        const size_t tiles =
                plan.stages * plan.policy.threads * 16 * sizeOf(p.keyType);
        const size_t besides = isLarge
                ? 5 * 1024 + 4 * room + std::max(tiles, 16 * room)
                : 13 * 1024 + tiles;
        EXPECT_LE(
                besides + 8 * size_t(plan.capacity), p.device.blockSharedBytes)
                << plan.toString();
    };
    forEachShape(expectFits);
    forEachShape([&](SelectProblem p) {
        for (const int k : {2289, 2500, 4096}) {
            for (const idx_t cols : {idx_t(k), idx_t(4000), idx_t(8192)}) {
                p.k = k;
                p.cols = cols;
                if (k <= cols) {
                    expectFits(p);
                }
            }
        }
    });
    EXPECT_GT(large, 100u);
}

/// Rows more alike get no lower a limit; and a block whose buffer is full can
/// always go on.
TEST(ThresholdPlans, RanksGrowWithDispersion) {
    size_t growing = 0;
    forEachShape([&](const SelectProblem& p) {
        const ThresholdPlan plan = planThreshold(p);
        if (plan.fused) {
            EXPECT_GE(
                    plan.capacity,
                    std::min(p.cols, p.k + idx_t(kLeastFusedRoom)));
        }
        if (plan.samplePlaces == 0) {
            return;
        }
        const int groups = plan.sampleParts > 1
                ? kSampledGroups
                : plan.sampleThreads() * kSampleItems;
        int before = 1;
        for (const SampleRank& one : plan.sampleRanks) {
            EXPECT_GE(one.rank, before) << plan.toString();
            EXPECT_GE(one.most, one.rank);
            EXPECT_LT(one.most, groups);
            before = one.rank;
        }
        growing += before > plan.sampleRanks[0].rank;
    });
    EXPECT_GT(growing, 1000u);
}

/// Every shape whose rows a block alone would read for long has another turn
/// for those that are misled.
TEST(ThresholdPlans, LongRowsHaveAnotherTurn) {
    size_t with = 0;
    size_t without = 0;
    forEachShape([&](const SelectProblem& p) {
        const ThresholdPlan plan = planThreshold(p);
        if (plan.fused || plan.isComb || plan.isCluster || plan.isHeld ||
            plan.samplePlaces == 0) {
            EXPECT_EQ(plan.againPlaces, 0);
            return;
        }
        EXPECT_TRUE(plan.againPlaces > 0 || p.cols < 1 << 22)
                << plan.toString();
        EXPECT_TRUE(plan.againPlaces == 0 || plan.capacity < p.cols)
                << plan.toString();
        (plan.againPlaces > 0 ? with : without) += 1;
    });
    EXPECT_GT(with, 100u);
    EXPECT_GT(without, 10u);
}

/// k = 1: blocks of either size, at both sides of the edges.
TEST(SelectTables, MinimaOfLongRowsThatAreThereAtOnce) {
    const auto chosen = [](idx_t rows, idx_t cols, DataType type) {
        return chosenAlgorithm(onH200(rows, cols, 1, type));
    };
    for (const DataType type : {DataType::Float32, DataType::BFloat16}) {
        EXPECT_EQ(chosen(1, 16384, type), SelectAlgorithm::ShortRows);
        EXPECT_EQ(chosen(660, 16385, type), SelectAlgorithm::Bits);
        EXPECT_EQ(chosen(661, 16385, type), SelectAlgorithm::ShortRows);
        EXPECT_EQ(chosen(742, 65536, type), SelectAlgorithm::ShortRows);
        EXPECT_EQ(chosen(742, 65537, type), SelectAlgorithm::Bits);
        EXPECT_EQ(chosen(2112, 20993, type), SelectAlgorithm::ShortRows);
        EXPECT_EQ(chosen(2113, 20993, type), SelectAlgorithm::Bits);
    }
}

/// Half of the columns and more, of more than a block sorts as survivors, where
/// rows are many.
TEST(SelectTables, HalfOfManyRowsOfFloatsIsSorted) {
    const auto chosen = [](idx_t rows, idx_t cols, int k) {
        return chosenAlgorithm(onH200(rows, cols, k));
    };
    EXPECT_EQ(chosen(7384, 4457, 2370), SelectAlgorithm::Sort);
    EXPECT_EQ(chosen(32 * 132 + 1, 4096, 2049), SelectAlgorithm::Sort);
    EXPECT_EQ(chosen(32 * 132, 4096, 2049), SelectAlgorithm::SampleThreshold);
    EXPECT_EQ(chosen(7384, 4096, 2048), SelectAlgorithm::SampleThreshold);
    EXPECT_EQ(chosen(7384, 4457, 2228), SelectAlgorithm::SampleThreshold);
    EXPECT_EQ(chosen(7384, 4457, 2229), SelectAlgorithm::Sort);
    EXPECT_EQ(chosen(7384, 3584, 2800), SelectAlgorithm::SampleThreshold);
    EXPECT_EQ(chosen(7384, 3585, 2800), SelectAlgorithm::Sort);
    EXPECT_EQ(chosen(5000, 8192, 5000), SelectAlgorithm::Sort);
    EXPECT_EQ(chosen(5000, 16385, 9000), SelectAlgorithm::SampleThreshold);
    // The answer in any order is no sort.
    SelectProblem unsorted = onH200(7384, 4457, 2370);
    unsorted.sorted = false;
    EXPECT_EQ(chosenAlgorithm(unsorted), SelectAlgorithm::SampleThreshold);
}

/// Bits is chosen for one key alone: tune_select.py says why. No sample is
/// drawn for one key.
TEST(SelectTables, BitsAreForTheBestAlone) {
    const auto chosen = [](idx_t rows, idx_t cols, int k) {
        return chosenAlgorithm(onH200(rows, cols, k, DataType::Float32));
    };
    EXPECT_EQ(chosen(16384, 3000, 1), SelectAlgorithm::ShortRows);
    EXPECT_EQ(chosen(16384, 4096, 1), SelectAlgorithm::ShortRows);
    EXPECT_EQ(chosen(16384, 10240, 1), SelectAlgorithm::ShortRows);
    EXPECT_EQ(chosen(16384, 16385, 1), SelectAlgorithm::Bits);
    EXPECT_EQ(chosen(2048, 8193, 1), SelectAlgorithm::ShortRows);
    EXPECT_EQ(chosen(2, idx_t(1) << 27, 1), SelectAlgorithm::Bits);
    EXPECT_EQ(chosen(2048, 0, 1), chosen(2048, 0, 2));
    EXPECT_EQ(chosen(1, 54331, 62), SelectAlgorithm::SampleThreshold);
    EXPECT_EQ(chosen(1, 54331, 1), SelectAlgorithm::Bits);
    for (const idx_t rows : kRows) {
        for (const idx_t cols : kCols) {
            for (const int k : kKs) {
                if (rows > 0 && cols > 0 && k > 1) {
                    EXPECT_NE(chosen(rows, cols, k), SelectAlgorithm::Bits)
                            << rows << " x " << cols << ", k = " << k;
                }
            }
        }
    }
}

/// The shipped table has rows for every shape of the fallback.
TEST(SelectTables, TheFallbackHasRows) {
    forEachShape([](const SelectProblem& p) {
        const auto any = [](SelectAlgorithm) { return true; };
        const SelectTableRow* row = rowFor(kSelectTable, p, any);
        ASSERT_TRUE(row);
        EXPECT_EQ(row->computeCapability, kFallbackCapability);
    });
}

} // namespace
} // namespace faiss_bits::test
