/// Which rows are read by combs. Makes no CUDA call.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/select/threshold/CombLines.h"
#include "kernels/select/threshold/CombPlan.h"
#include "tests/select/OnH200.h"

namespace faiss_bits::test {
namespace {

/// Threads of a block; 0: another plan.
int threadsOf(const SelectProblem& p) {
    const ThresholdPlan plan = planThreshold(p);
    return plan.isComb ? plan.policy.threads : 0;
}

TEST(CombPlans, ManyRowsOfSomeThousandColumns) {
    constexpr DataType kHalf = DataType::Float16;
    EXPECT_EQ(threadsOf(onH200(527, 16384, 10)), 0);
    EXPECT_GT(threadsOf(onH200(528, 16384, 10)), 0);
    EXPECT_EQ(threadsOf(onH200(5000, 2047, 10)), 0);
    EXPECT_GT(threadsOf(onH200(5000, 2048, 10)), 0);
    EXPECT_GT(threadsOf(onH200(5000, 10240, 256)), 0);
    EXPECT_EQ(threadsOf(onH200(5000, 10240, 257)), 0);
    EXPECT_EQ(threadsOf(onH200(5000, 10240, 1)), 0);
    EXPECT_GT(threadsOf(onH200(600, 10241, 64)), 0);
    EXPECT_EQ(threadsOf(onH200(600, 10241, 65)), 0);
    EXPECT_EQ(threadsOf(onH200(600, 16384, 192)), 0);
    EXPECT_GT(threadsOf(onH200(600, 16384, 193)), 0);
    EXPECT_GT(threadsOf(onH200(600, 16384, 128, kHalf)), 0);
    EXPECT_EQ(threadsOf(onH200(600, 16384, 129, kHalf)), 0);
    // Longer rows: 16-bit keys, and floats of larger k if they are many.
    EXPECT_EQ(threadsOf(onH200(527, 16385, 10)), 0);
    EXPECT_GT(threadsOf(onH200(528, 16385, 64)), 0);
    EXPECT_EQ(threadsOf(onH200(2111, 16385, 65)), 0);
    EXPECT_GT(threadsOf(onH200(2112, 65536, 128)), 0);
    EXPECT_EQ(threadsOf(onH200(2112, 65536, 129)), 0);
    EXPECT_EQ(threadsOf(onH200(5000, 65537, 10)), 0);
    EXPECT_GT(threadsOf(onH200(528, 36864, 256, kHalf)), 0);
    EXPECT_EQ(threadsOf(onH200(528, 36864, 257, kHalf)), 0);
    EXPECT_EQ(threadsOf(onH200(528, 36865, 10, kHalf)), 0);
    SelectProblem biased = onH200(5000, 10240, 10);
    const float bias = 0;
    biased.colBias = &bias;
    EXPECT_EQ(threadsOf(biased), 0);
}

/// Smaller blocks for shorter rows, and where a last round of larger ones would
/// be nearly empty; larger ones where survivors want room.
TEST(CombPlans, BlocksFollowRowsAndColumns) {
    EXPECT_EQ(threadsOf(onH200(20000, 8000, 10)), 64);
    EXPECT_EQ(threadsOf(onH200(20000, 16000, 10)), 128);
    EXPECT_EQ(threadsOf(onH200(1300, 16000, 10)), 64);
    EXPECT_EQ(threadsOf(onH200(1056, 8000, 10)), 128);
    EXPECT_EQ(threadsOf(onH200(528, 8000, 10)), 256);
    EXPECT_EQ(threadsOf(onH200(20000, 8000, 100)), 128);
    EXPECT_EQ(threadsOf(onH200(20000, 8000, 200)), 256);
    EXPECT_EQ(threadsOf(onH200(20000, 11000, 64)), 128);
}

/// What random rows leave has room in a block, and all blocks that registers
/// allow have room in a multiprocessor.
TEST(CombPlans, SurvivorsHaveRoom) {
    for (const DataType type : {DataType::Float32, DataType::Float16}) {
        for (const idx_t cols : {2048, 5000, 10240, 20000, 36864, 65536}) {
            for (const int k : {2, 32, 64, 65, 128, 256}) {
                const SelectProblem p = onH200(20000, cols, k, type);
                const ThresholdPlan plan = planThreshold(p);
                if (!plan.isComb) {
                    continue;
                }
                EXPECT_GE(plan.capacity, k + 64u);
                EXPECT_GE(plan.capacity, plan.expected);
                const size_t threads = size_t(plan.policy.threads);
                const size_t bytes = 1024 + 4 * 4 * threads + 640 +
                        2 * 64 * threads + 8 * size_t(plan.capacity);
                EXPECT_LE(1024 / threads * bytes, p.device.sharedBytes);
            }
        }
    }
    // A device with less shared memory reads whole rows in another way.
    SelectProblem small = onH200(20000, 8000, 10);
    small.device = {89, 142, 100 * 1024, 99 * 1024};
    EXPECT_FALSE(planThreshold(small).isComb);
}

/// Calls use(line) for those of tile t.
template <class Use>
void forEachLine(
        uint32_t tiles,
        uint32_t together,
        uint32_t row,
        uint32_t t,
        Use use) {
    for (uint32_t slot = 0; slot < together; ++slot) {
        const CombLines lines(tiles, together, slot, row);
        for (uint32_t v = 0; v < 4; ++v) {
            use(lines.lineOf(v, lines.placeOf(t)));
        }
    }
}

TEST(CombPlans, TilesTakeEachLineOnce) {
    for (const uint32_t together : {8, 16, 32}) {
        for (const uint32_t tiles : {1, 2, 3, 7, 20, 36}) {
            for (const uint32_t row : {0, 1, 123456789}) {
                std::vector<int> taken(4 * together * tiles);
                for (uint32_t t = 0; t < tiles; ++t) {
                    forEachLine(tiles, together, row, t, [&](uint32_t line) {
                        ASSERT_LT(line, taken.size());
                        ++taken[line];
                    });
                }
                for (const int times : taken) {
                    ASSERT_EQ(times, 1);
                }
            }
        }
    }
}

/// Keys that come again every few lines, the best in one of these: the limit is
/// from the two best lines of the first tile. Lines at even distances would let
/// the whole row through in the worst row, and half of it on average.
TEST(CombPlans, NoPeriodShowsTheFirstTileItsWorstOnly) {
    constexpr uint32_t kRows = 64;
    for (const uint32_t together : {8, 16, 32}) {
        for (const uint32_t tiles : {6, 8, 20, 32}) {
            for (const uint32_t period : {tiles, 2 * tiles}) {
                double sum = 0;
                double most = 0;
                for (uint32_t row = 0; row < kRows; ++row) {
                    for (uint32_t begin = 0; begin < period; ++begin) {
                        std::vector<uint32_t> behindBest;
                        forEachLine(
                                tiles, together, row, 0, [&](uint32_t line) {
                                    behindBest.push_back(
                                            (line + begin) % period);
                                });
                        std::nth_element(
                                behindBest.begin(),
                                behindBest.begin() + 1,
                                behindBest.end());
                        const double part =
                                double(behindBest[1] + 1) / double(period);
                        sum += part;
                        most = std::max(most, part);
                    }
                }
                EXPECT_LE(most, 0.75);
                EXPECT_LE(sum / (kRows * period), 1.5 / 8);
            }
        }
    }
}

/// Auto takes them in place of short_rows where they take less time.
TEST(CombPlans, InPlaceOfShortRows) {
    const auto algorithm = [](const SelectProblem& p) {
        return planSelection(p).algorithm();
    };
    EXPECT_EQ(algorithm(onH200(20000, 8000, 10)), SelectAlgorithm::ShortRows);
    EXPECT_EQ(
            algorithm(onH200(800, 8000, 10)), SelectAlgorithm::SampleThreshold);
    EXPECT_EQ(
            algorithm(onH200(20000, 8000, 200)),
            SelectAlgorithm::SampleThreshold);
    EXPECT_EQ(
            algorithm(onH200(20000, 10241, 10)),
            SelectAlgorithm::SampleThreshold);
    EXPECT_EQ(
            algorithm(onH200(800, 8000, 17, DataType::Float16)),
            SelectAlgorithm::SampleThreshold);
    EXPECT_EQ(
            algorithm(onH200(800, 8000, 16, DataType::Float16)),
            SelectAlgorithm::ShortRows);
    EXPECT_EQ(algorithm(onH200(800, 8000, 1)), SelectAlgorithm::ShortRows);
}

} // namespace
} // namespace faiss_bits::test
