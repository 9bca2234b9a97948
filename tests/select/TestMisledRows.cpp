/// Rows that their sample misleads: keys laid out against the places where
/// SamplePlaces looks, and rows whose neighbours are alike.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <span>

#include "kernels/select/threshold/HeldPlan.h"
#include "kernels/select/threshold/SamplePlaces.h"
#include "kernels/select/threshold/ThresholdPlan.h"
#include "tests/common/Compare.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"
#include "tests/common/Oracle.h"
#include "tests/select/ThresholdPlanOf.h"

namespace faiss_bits::test {
namespace {

enum class Lie {
    SampleIsBest,     ///< the limit is too low
    SampleIsWorst,    ///< too high
    BothAreBest,      ///< the second sample is misled too
    BothOfSomeRows,   ///< of every third row
    TinyAndZeros,     ///< both see all but a few of the k best, which lie
                      ///< below zero as near as can be; all others are zeros
    WorstDescending,  ///< too high, and every key passes on the way down
    RandomWalk,       ///< how many of the best a run has is all or nothing
    ClustersInRandom, ///< runs of random lengths
    EqualButSample    ///< ties, which the sample is not one of
};

const std::vector<Lie> kLies = {
        Lie::SampleIsBest,
        Lie::SampleIsWorst,
        Lie::BothAreBest,
        Lie::WorstDescending,
        Lie::RandomWalk,
        Lie::ClustersInRandom,
        Lie::EqualButSample};

SelectProblem problemOf(
        int64_t rows,
        int64_t cols,
        int k,
        DataType type,
        bool largest) {
    SelectProblem p;
    p.rows = rows;
    p.cols = cols;
    p.k = k;
    p.keyType = type;
    p.largest = largest;
    p.algorithm = SelectAlgorithm::SampleThreshold;
    p.device = deviceTraits();
    return p;
}

/// Columns that the sample of a row draws, the first or the second.
std::vector<uint32_t> sampledColumns(
        const SelectProblem& p,
        const ThresholdPlan& plan,
        uint32_t row,
        bool isAgain) {
    const int threads = plan.sampleThreads();
    const SamplePlaces places(
            uint32_t(p.cols),
            threads,
            plan.samplePlaces,
            plan.sampleParts,
            row,
            isAgain);
    const uint32_t runs = uint32_t(threads) * plan.samplePlaces *
            plan.sampleParts / SamplePlaces::kThreads;
    std::vector<uint32_t> columns;
    for (uint32_t run = 0; run < runs; ++run) {
        for (uint32_t lane = 0; lane < SamplePlaces::kThreads; ++lane) {
            const uint32_t first = places.at(run, lane).column;
            for (uint32_t i = 0; i < kSampleItems; ++i) {
                columns.push_back(first + i);
            }
        }
    }
    return columns;
}

/// Keys in [0, 1), smallest first, with what the sample looks at in -1..0 or
/// 2..3.
void fillRow(
        std::span<float> keys,
        Lie lie,
        const SelectProblem& p,
        const ThresholdPlan& plan,
        uint32_t row) {
    std::mt19937 random(row * 77 + int(lie));
    std::uniform_real_distribution<float> uniform(0, 1);
    for (float& key : keys) {
        key = uniform(random);
    }
    const auto raise = [&](bool isAgain, float by) {
        for (uint32_t column : sampledColumns(p, plan, row, isAgain)) {
            keys[column] = uniform(random) + by;
        }
    };
    switch (lie) {
        case Lie::BothOfSomeRows:
            if (row % 3 != 1) {
                return;
            }
            [[fallthrough]];
        case Lie::BothAreBest:
            raise(true, -1);
            [[fallthrough]];
        case Lie::SampleIsBest:
            return raise(false, -1);
        case Lie::WorstDescending:
            std::sort(keys.begin(), keys.end(), std::greater<>());
            [[fallthrough]];
        case Lie::SampleIsWorst:
            return raise(false, 2);
        case Lie::RandomWalk: {
            std::normal_distribution<float> step;
            float at = 0;
            for (float& key : keys) {
                key = at += step(random);
            }
            return;
        }
        case Lie::ClustersInRandom:
            for (size_t i = 0; i < keys.size();) {
                const size_t length = 1 + random() % 700;
                const float center = uniform(random);
                for (size_t j = 0; j < length && i < keys.size(); ++j, ++i) {
                    keys[i] = center + 0.001f * uniform(random);
                }
            }
            return;
        case Lie::TinyAndZeros: {
            std::fill(keys.begin(), keys.end(), 0.0f);
            int left = p.k + 50;
            const auto lower = [&](uint32_t column) {
                left -= keys[column] == 0;
                keys[column] = -1e-40f;
            };
            for (const bool isAgain : {false, true}) {
                for (uint32_t column : sampledColumns(p, plan, row, isAgain)) {
                    lower(column);
                }
            }
            ASSERT_GT(left, 0);
            while (left > 0) {
                lower(uint32_t(random() % p.cols));
            }
            return;
        }
        case Lie::EqualButSample:
            std::fill(keys.begin(), keys.end(), 0.5f);
            return raise(false, 2);
    }
}

class MisledRows : public GpuTest {
   protected:
    static void expectSelects(
            const SelectProblem& shape,
            Lie lie,
            bool needsSample = true) {
        SelectProblem p = shape;
        const ThresholdPlan plan = planThreshold(p);
        SCOPED_TRACE(
                plan.toString() + " k=" + std::to_string(p.k) + " cols=" +
                std::to_string(p.cols) + " lie=" + std::to_string(int(lie)));
        ASSERT_TRUE(plan.samplePlaces > 0 || !needsSample);
        std::vector<float> keys(p.rows * p.cols);
        for (int64_t r = 0; r < p.rows; ++r) {
            const std::span<float> row(keys.data() + r * p.cols, p.cols);
            fillRow(row, lie, p, plan, uint32_t(r));
            if (HasFatalFailure()) {
                return;
            }
            for (float& key : row) {
                key = roundTo(p.keyType, p.largest ? -key : key);
            }
        }
        const DeviceBuffer<uint8_t> deviceKeys(packAs(p.keyType, keys));
        DeviceBuffer<uint8_t> outKeys(p.rows * p.k * sizeOf(p.keyType), 0xCD);
        DeviceBuffer<int64_t> outIds(p.rows * p.k, 0xCD);
        DeviceBuffer<uint8_t> scratch(selectWorkspaceBytes(p), 0xFF);
        p.keys = deviceKeys.data();
        p.outKeys = outKeys.data();
        p.outIds = outIds.data();
        runSelect(p, {scratch.data(), scratch.size()}, nullptr);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        const std::vector<float> found =
                unpackFrom(p.keyType, outKeys.download());
        const std::vector<int64_t> ids = outIds.download();
        for (int64_t r = 0; r < p.rows; ++r) {
            const RowOfKeys row{keys.data() + r * p.cols, p.cols};
            ASSERT_TRUE(isTopKOfRow(
                    row,
                    topKOfRow(row.keys, p.cols, nullptr, 0, p.k, p.largest),
                    found.data() + r * p.k,
                    ids.data() + r * p.k,
                    p.k,
                    0))
                    << "row " << r;
        }
    }

    /// The plan of a device that has no clusters.
    static SelectProblem withoutClusters(SelectProblem p) {
        p.device.computeCapability = 80;
        return p;
    }

    /// Of more rows than twice the multiprocessors none is held in registers.
    static SelectProblem onSmallDevice(SelectProblem p) {
        p.device.multiprocessors = 2;
        return withoutClusters(p);
    }

    static void expectAllLies(
            int64_t rows,
            int64_t cols,
            const std::vector<int>& ks,
            SelectProblem (*on)(SelectProblem) = withoutClusters) {
        for (const Lie lie : kLies) {
            for (const int k : ks) {
                for (const DataType type :
                     {DataType::Float32, DataType::Float16}) {
                    const bool largest = type == DataType::Float16;
                    const SelectProblem p =
                            problemOf(rows, cols, k, type, largest);
                    expectSelects(on(p), lie);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
};

TEST_F(MisledRows, OneBlockARow) {
    const auto shape = problemOf(50, 16000, 100, DataType::Float32, false);
    ASSERT_TRUE(planThreshold(onSmallDevice(shape)).fused);
    // Longer than rows by combs, which draw no sample.
    expectAllLies(50, 67000, {1, 10, 100}, onSmallDevice);
    expectAllLies(50, 16000, {600}, onSmallDevice);
    expectAllLies(50, 16000, {1500});
    expectAllLies(20, 67013, {40, 1000}, onSmallDevice);
}

/// So many that some of those whose neighbours are alike are read again.
TEST_F(MisledRows, OneBlockARowOfManyAlike) {
    const auto shape = problemOf(600, 7504, 262, DataType::Float16, true);
    ASSERT_TRUE(planThreshold(onSmallDevice(shape)).fused);
    expectSelects(onSmallDevice(shape), Lie::RandomWalk);
    expectSelects(onSmallDevice(shape), Lie::ClustersInRandom);
}

/// More than the other blocks sort.
TEST_F(MisledRows, OneBlockOfLargeK) {
    const auto shape = problemOf(52, 20001, 4096, DataType::Float32, false);
    const ThresholdPlan plan = planThreshold(onSmallDevice(shape));
    ASSERT_TRUE(plan.fused);
    ASSERT_GE(plan.policy.room, 4096);
    expectAllLies(52, 20001, {2049, 4096}, onSmallDevice);
    expectAllLies(20, 12347, {2500}, onSmallDevice);
}

TEST_F(MisledRows, ReadAgainByAllBlocks) {
    const ThresholdPlan plan = planThreshold(withoutClusters(
            problemOf(11, 400000, 100, DataType::Float32, false)));
    ASSERT_FALSE(plan.fused || plan.isCluster);
    ASSERT_GT(plan.againPlaces, 0);
    expectAllLies(11, 400000, {1, 10, 100, 2048, 5000, 30000});
    expectAllLies(1, 4300003, {100, 2048, 70000});
    // Few keys, long rows.
    expectAllLies(2, 200001, {10, 100, 2048, 5000});
    expectAllLies(1, 1000000, {100, 3000, 70000});
}

/// With a second sample as large as the first, drawn in a launch of its own.
TEST_F(MisledRows, ReadAgainAfterALaunchThatDraws) {
    const auto shape = problemOf(129, 1040448, 50, DataType::Float32, false);
    ASSERT_EQ(planThreshold(shape).secondDraw, SecondDraw::Alone);
    expectSelects(shape, Lie::SampleIsBest);
}

/// With one that was drawn beside the first, of several rows.
TEST_F(MisledRows, ReadAgainAfterBothWereDrawn) {
    const auto shape = problemOf(5, 13421773, 805, DataType::Float16, true);
    ASSERT_EQ(planThreshold(shape).secondDraw, SecondDraw::WithFirst);
    expectSelects(shape, Lie::SampleIsBest);
    expectSelects(shape, Lie::SampleIsWorst);
}

/// Of large k, whose lists have room for most of a row, but not for all of it.
TEST_F(MisledRows, ReadAgainWhereNearlyAllPassed) {
    const auto shape = problemOf(2, 1200007, 300000, DataType::Float32, false);
    const ThresholdPlan plan = planThreshold(shape);
    ASSERT_TRUE(plan.againPlaces > 0 && plan.capacity > 0.9 * shape.cols);
    for (const Lie lie : kLies) {
        expectSelects(shape, lie);
    }
}

/// And what both turns misled by clusters of blocks, of any size.
TEST_F(MisledRows, ReadAgainByClusters) {
    if (!sharesRows()) {
        GTEST_SKIP() << "needs clusters of blocks";
    }
    const auto blocksOf = [](int64_t cols, int k) {
        const ThresholdPlan plan =
                planThreshold(problemOf(8, cols, k, DataType::Float32, false));
        EXPECT_EQ(plan.policy.room, 0) << plan.toString();
        return plan.lastBlocks;
    };
    const uint32_t most = mostClusterBlocks(deviceTraits());
    EXPECT_EQ(blocksOf(16384 * 2 - 1, 5000), 1u);
    EXPECT_EQ(blocksOf(16384 * 2, 5000), 2u);
    EXPECT_EQ(blocksOf(16384 * most - 1, 30000), most / 2);
    EXPECT_EQ(blocksOf(16384 * most, 30000), most);
    for (const Lie lie : {Lie::BothAreBest, Lie::EqualButSample}) {
        for (const int64_t cols : {2 * 16384 - 1, 2 * 16384 + 3}) {
            expectSelects(
                    problemOf(8, cols, 5000, DataType::Float32, false), lie);
            expectSelects(
                    problemOf(8, cols, 5000, DataType::Float16, true), lie);
        }
        for (const int64_t cols : {16384 * most - 1, 16384 * most}) {
            expectSelects(
                    problemOf(3, cols, 30000, DataType::Float32, true), lie);
            expectSelects(
                    problemOf(3, cols, 2049, DataType::BFloat16, false), lie);
        }
    }
    // More rows than clusters.
    for (const Lie lie : {Lie::BothAreBest, Lie::BothOfSomeRows}) {
        expectSelects(
                problemOf(150, 33001, 5000, DataType::Float16, true), lie);
        expectSelects(
                problemOf(20, 300000, 9000, DataType::Float32, false), lie);
    }
    // Zeros are not within a limit below them.
    expectSelects(
            problemOf(2, 400000, 30000, DataType::Float32, false),
            Lie::TinyAndZeros);
    expectSelects(
            problemOf(2, 400000, 30000, DataType::BFloat16, true),
            Lie::TinyAndZeros);
}

/// Too few keys and columns for another turn.
TEST_F(MisledRows, ReadAgainByABlock) {
    const SelectProblem shape = withoutClusters(
            problemOf(2, 120001, 100, DataType::Float32, false));
    ASSERT_EQ(planThreshold(shape).againPlaces, 0);
    expectAllLies(2, 120001, {10, 100, 2048, 5000});
    expectAllLies(1, 131071, {100, 3000});
}

TEST_F(MisledRows, SharedByACluster) {
    if (!sharesRows()) {
        GTEST_SKIP() << "needs clusters of blocks";
    }
    const auto asItIs = [](SelectProblem p) { return p; };
    const auto shape = problemOf(3, 100003, 1500, DataType::Float32, false);
    ASSERT_TRUE(planThreshold(shape).isCluster);
    expectAllLies(3, 100003, {1025, 2048}, asItIs);
    expectAllLies(
            1, 800000, {2, 10, 32, 33, 100, 256, 2048, 2049, 4096}, asItIs);
    expectAllLies(20, 40000, {1200}, asItIs);
}

TEST_F(MisledRows, Small) {
    for (const Lie lie :
         {Lie::BothAreBest, Lie::WorstDescending, Lie::RandomWalk}) {
        for (const int k : {40, 3000}) {
            expectSelects(
                    problemOf(1, 4200000, k, DataType::Float32, false), lie);
        }
        expectSelects(problemOf(4, 40000, 4500, DataType::Float32, false), lie);
        const auto block = problemOf(5, 9000, 40, DataType::Float32, false);
        expectSelects(onSmallDevice(block), lie);
        const auto large = problemOf(4, 20001, 2500, DataType::Float32, false);
        ASSERT_TRUE(planThreshold(onSmallDevice(large)).fused);
        expectSelects(onSmallDevice(large), lie);
        expectSelects(problemOf(2, 40000, 1200, DataType::Float32, false), lie);
        expectSelects(problemOf(1, 70001, 2000, DataType::Float16, true), lie);
    }
}

} // namespace
} // namespace faiss_bits::test
