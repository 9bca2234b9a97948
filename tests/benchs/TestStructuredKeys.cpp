/// The keys of bench_select_sweep.

#include <algorithm>
#include <cmath>

#include "benchs/common/StructuredKeys.h"
#include "kernels/select/threshold/SamplePlaces.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"

namespace faiss_bits::bench {
namespace {

using test::DeviceBuffer;
using test::GpuTest;

constexpr int64_t kRows = 5;
constexpr int64_t kCols = 20000;
constexpr SampleLayout kSample{128, 4, 2};

KeyRecipe recipeOf(Order order, DataType type = DataType::Float32) {
    KeyRecipe recipe;
    recipe.order = order;
    recipe.type = type;
    recipe.rows = kRows;
    recipe.cols = kCols;
    recipe.k = 50;
    recipe.seed = 11;
    recipe.sample = kSample;
    return recipe;
}

std::vector<uint8_t> bytesOf(const KeyRecipe& recipe) {
    DeviceBuffer<uint8_t> keys(
            recipe.rows * recipe.cols * sizeOf(recipe.type), 0xCD);
    fillKeys(keys.data(), recipe);
    return keys.download();
}

std::vector<float> keysOf(const KeyRecipe& recipe) {
    return test::unpackFrom(recipe.type, bytesOf(recipe));
}

class StructuredKeys : public GpuTest {};

TEST_F(StructuredKeys, AreThoseOfTheirSeed) {
    for (const Order order : allOrders()) {
        if (needsVectors(order)) {
            EXPECT_THROW(bytesOf(recipeOf(order)), std::invalid_argument);
            continue;
        }
        for (const DataType type :
             {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
            KeyRecipe recipe = recipeOf(order, type);
            const std::vector<uint8_t> keys = bytesOf(recipe);
            EXPECT_EQ(bytesOf(recipe), keys) << nameOf(order);
            ++recipe.seed;
            const bool isDrawn = order != Order::Ascending &&
                    order != Order::Descending && order != Order::Equal;
            EXPECT_EQ(bytesOf(recipe) != keys, isDrawn) << nameOf(order);
        }
    }
}

TEST_F(StructuredKeys, OnlySomeHaveNan) {
    for (const Order order : allOrders()) {
        if (needsVectors(order)) {
            continue;
        }
        for (const DataType type :
             {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
            const std::vector<float> keys = keysOf(recipeOf(order, type));
            const int64_t nan =
                    std::count_if(keys.begin(), keys.end(), [](float key) {
                        return std::isnan(key);
                    });
            EXPECT_EQ(nan > 0, order == Order::Nan)
                    << nameOf(order) << " " << nan;
        }
    }
}

/// The adversaries' keys, against the host's idea of where the sample looks.
TEST_F(StructuredKeys, AdversariesKnowTheSample) {
    for (const bool largest : {false, true}) {
        for (const Order order :
             {Order::AdversaryBest, Order::AdversaryWorst}) {
            KeyRecipe recipe = recipeOf(order);
            recipe.largest = largest;
            const std::vector<float> keys = keysOf(recipe);
            for (uint32_t row = 0; row < kRows; ++row) {
                std::vector<bool> sampled(kCols);
                const SamplePlaces places(
                        kCols,
                        kSample.threads,
                        kSample.places,
                        kSample.parts,
                        row);
                const uint32_t draws =
                        kSample.threads * kSample.places * kSample.parts;
                for (uint32_t i = 0; i < draws; ++i) {
                    const SamplePlace place = places.at(
                            i / SamplePlaces::kThreads,
                            i % SamplePlaces::kThreads);
                    for (int j = 0; j < kSampleItems; ++j) {
                        sampled[place.column + j] = true;
                    }
                }
                for (int64_t c = 0; c < kCols; ++c) {
                    const float key = std::fabs(keys[row * kCols + c]);
                    const bool isLow =
                            sampled[c] == (order == Order::AdversaryBest);
                    ASSERT_TRUE(isLow ? key <= 0.5f : key >= 0.5f)
                            << nameOf(order) << " " << row << " " << c;
                    ASSERT_EQ(std::signbit(keys[row * kCols + c]), largest);
                }
            }
        }
    }
}

TEST_F(StructuredKeys, WithoutASampleAdversariesAreRandom) {
    KeyRecipe recipe = recipeOf(Order::AdversaryWorst);
    recipe.sample = {};
    EXPECT_EQ(bytesOf(recipe), bytesOf(recipeOf(Order::Random)));
}

TEST_F(StructuredKeys, TheBestLieInOneRun) {
    const std::vector<float> keys = keysOf(recipeOf(Order::BestRun));
    for (int64_t row = 0; row < kRows; ++row) {
        std::vector<int64_t> best;
        for (int64_t c = 0; c < kCols; ++c) {
            if (keys[row * kCols + c] < 0.01f) {
                best.push_back(c);
            }
        }
        ASSERT_GE(best.size(), 25u);
        ASSERT_LE(best.size(), 100u);
        EXPECT_EQ(best.back() - best.front() + 1, int64_t(best.size()));
    }
}

TEST_F(StructuredKeys, AWalkTakesSteps) {
    const std::vector<float> keys = keysOf(recipeOf(Order::RandomWalk));
    for (int64_t row = 0; row < kRows; ++row) {
        double way = 0;
        int64_t up = 0;
        for (int64_t c = 1; c < kCols; ++c) {
            const float step =
                    keys[row * kCols + c] - keys[row * kCols + c - 1];
            ASSERT_LE(std::fabs(step), 1.001f) << row << " " << c;
            way += std::fabs(step);
            up += step > 0;
        }
        // Steps of half a unit on average, as many up as down.
        EXPECT_GT(way, 0.4 * kCols) << row;
        EXPECT_NEAR(double(up), 0.5 * kCols, 0.05 * kCols) << row;
    }
}

TEST_F(StructuredKeys, ClustersAreRuns) {
    const std::vector<float> keys = keysOf(recipeOf(Order::Clustered));
    for (int64_t row = 0; row < kRows; ++row) {
        int jumps = 0;
        for (int64_t c = 1; c < kCols; ++c) {
            const int64_t i = row * kCols + c;
            jumps += std::fabs(keys[i] - keys[i - 1]) > 0.0101f;
        }
        EXPECT_GE(jumps, 1);
        EXPECT_LE(jumps, kCols / 6);
    }
}

TEST_F(StructuredKeys, NegatedAndSpread) {
    const std::vector<float> values = {
            1.f, -2.f, NAN, 0.f, INFINITY, -0.f, 3.f, 4.f};
    DeviceBuffer<float> keys(values);
    DeviceBuffer<float> spread(2 * 6, 0);
    spreadRows(keys.data(), spread.data(), DataType::Float32, 2, 4, 6);
    negateKeys(keys.data(), DataType::Float32, 8);
    const std::vector<float> negated = keys.download();
    const std::vector<float> rows = spread.download();
    for (int i = 0; i < 8; ++i) {
        const float key = rows[i / 4 * 6 + i % 4];
        if (std::isnan(values[i])) {
            EXPECT_TRUE(std::isnan(negated[i]) && !std::signbit(negated[i]));
            EXPECT_TRUE(std::isnan(key));
        } else {
            EXPECT_EQ(negated[i], -values[i]);
            EXPECT_NE(std::signbit(negated[i]), std::signbit(values[i]));
            EXPECT_EQ(key, values[i]);
        }
    }
    for (const int gap : {4, 5, 10, 11}) {
        EXPECT_TRUE(std::isnan(rows[gap])) << gap;
    }
}

} // namespace
} // namespace faiss_bits::bench
