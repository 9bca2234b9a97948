/// A few of the best of rows that warps hold (short_rows/FewOfLanes.cuh): both
/// sides of every edge, keys that meet in few lanes, and more keys within a
/// limit than there is room for.

#include <random>

#include "kernels/select/short_rows/FewOfLanesPlan.h"
#include "tests/select/Layouts.h"
#include "tests/select/SelectOfFloats.h"
#include "tests/select/ShortRowsCase.h"

namespace faiss_bits::test {
namespace {

/// A block that is not full; of longer rows so few that no block has each.
constexpr int64_t rowsOf(int64_t cols) {
    return cols > 2048 ? 15 : 37;
}

class FewOfLanes : public GpuTest {
   protected:
    static FewOfLanesShape lanesOf(const SelectCase& c, int k) {
        return fewOfLanesShape(shapeOf(c, k));
    }

    /// At both sides of what each kernel takes.
    static std::vector<int> ksOf(const SelectCase& c) {
        std::vector<int> ks;
        for (int k : {2, 3, 9, 16, 17, 32, 33, 40, 41, 48, 49, 63, 64}) {
            if (lanesOf(c, k).items > 0) {
                ks.push_back(k);
            }
        }
        return ks;
    }

    static void expectFew(const SelectCase& c, std::vector<int> ks = {}) {
        ks = ks.empty() ? ksOf(c) : ks;
        ASSERT_FALSE(ks.empty()) << c.describe();
        for (int k : ks) {
            ASSERT_GT(lanesOf(c, k).items, 0) << c.describe() << " k=" << k;
        }
        expectSelects(c, ks);
    }
};

/// Both sides of where kernels and numbers of turns change, for rows that begin
/// at the first of 32 keys, and at the last.
const int64_t kCols[] = {513,  600,  737,  738,  768,  993,  994,
                         1024, 1025, 1505, 1506, 1536, 2017, 2018,
                         2048, 2049, 3041, 3042, 4065, 4066, 4096};

/// Of keys of 16 bits; NarrowLists.cuh and NarrowRow.cuh take others.
constexpr int64_t kLeastNarrowCols = 1025;
const int64_t kNarrowCols[] = {1025, 1100, 2017, 2048, 2049, 4100, 6500, 8192};

TEST_F(FewOfLanes, EveryValueAndLength) {
    for (Values values : kAllValues) {
        for (int64_t cols : kCols) {
            SelectCase c = shortRowsCase(rowsOf(cols), cols);
            c.values = values;
            expectFew(c);
            c.largest = true;
            c.shift = 1;
            expectFew(c);
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(FewOfLanes, EveryValueOfKeysOf16Bits) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (Values values : kAllValues) {
            for (int64_t cols : kNarrowCols) {
                SelectCase c = shortRowsCase(rowsOf(cols), cols);
                c.keyType = type;
                c.values = values;
                c.largest = cols % 2 == 1;
                expectFew(c);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FewOfLanes, EveryAddress) {
    for (DataType type :
         {DataType::Float16, DataType::BFloat16, DataType::Float32}) {
        for (int64_t cols : {600, 740, 1025, 1100, 1300, 2040, 2560, 4090}) {
            if (type != DataType::Float32 && cols < kLeastNarrowCols) {
                continue;
            }
            for (size_t shift : {0, 1, 2, 3, 7, 15, 16, 30, 31}) {
                SelectCase c = shortRowsCase(rowsOf(cols), cols);
                c.keyType = type;
                c.shift = shift;
                c.padding = int64_t(shift % 3);
                c.largest = shift % 2 == 1;
                for (Values values :
                     {Values::FewDistinct, Values::SomeNan, Values::Random}) {
                    c.values = values;
                    expectFew(c);
                }
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Warps without rows, and more blocks than run at a time.
TEST_F(FewOfLanes, EveryNumberOfRows) {
    for (int64_t rows : {1, 2, 3, 4, 5, 31, 33, 127, 129, 1000, 5003}) {
        for (int64_t cols : {700, 1500}) {
            expectFew(shortRowsCase(rows, cols), {2, 17, 32});
        }
        SelectCase c = shortRowsCase(rows, 1500);
        c.keyType = DataType::Float16;
        expectFew(c, {17, 32});
    }
}

TEST_F(FewOfLanes, Layouts) {
    for (int64_t cols : {601, 1200, 2500}) {
        for (DataType type : {DataType::Float32, DataType::BFloat16}) {
            if (type != DataType::Float32 && cols < kLeastNarrowCols) {
                continue;
            }
            const std::vector<int> ks = type == DataType::Float32
                    ? std::vector<int>{9, 17, 32}
                    : std::vector<int>{9, 16};
            SelectCase plain = shortRowsCase(rowsOf(cols), cols);
            plain.keyType = type;
            forEachLayout(
                    plain, [&](const SelectCase& c) { expectFew(c, ks); });
        }
    }
}

/// Biases, k = 1, shorter rows, longer ones and larger k go other ways.
TEST_F(FewOfLanes, TakesRowsWithoutBias) {
    SelectProblem p;
    p.rows = 1000;
    p.cols = 600;
    p.k = 4;
    const auto isTaken = [&] { return fewOfLanesShape(p).items > 0; };
    EXPECT_TRUE(isTaken());
    p.k = 1;
    EXPECT_FALSE(isTaken());
    p.k = 32;
    EXPECT_TRUE(isTaken());
    p.k = 33;
    EXPECT_FALSE(isTaken());
    p.cols = 1500;
    EXPECT_TRUE(isTaken());
    p.k = 65;
    EXPECT_FALSE(isTaken());
    p.k = 40;
    p.cols = 4096;
    EXPECT_TRUE(isTaken());
    p.k = 41;
    EXPECT_FALSE(isTaken());
    p.k = 4;
    p.cols = 4097;
    EXPECT_FALSE(isTaken());
    p.cols = 512;
    EXPECT_FALSE(isTaken());
    p.cols = 600;
    p.colBiasGiven = true;
    EXPECT_FALSE(isTaken());
}

/// The best of a row at even distances, or equal: a lane may have all of them.
class FewOfPeriods : public FewOfLanes {
   protected:
    static void expectPeriods(int64_t cols, int k, int period, int levels) {
        SelectCase c = shortRowsCase(rowsOf(cols), cols);
        ASSERT_GT(lanesOf(c, k).items, 0) << cols << " k=" << k;
        std::mt19937 random(7);
        std::vector<float> keys(c.rows * cols);
        for (int64_t i = 0; i < c.rows * cols; ++i) {
            const int64_t row = i / cols;
            const float level = float((i % cols + 3 * row) % period);
            // Rows of as many values as the period, or with a little more.
            keys[i] = level +
                    (row % 2 ? 0 : float(random() % levels) / float(levels));
        }
        SelectProblem p;
        p.rows = c.rows;
        p.cols = cols;
        p.k = k;
        p.algorithm = c.algorithm;
        p.device = deviceOf(c);
        SCOPED_TRACE(
                testing::Message()
                << cols << " columns, k = " << k << ", period " << period);
        expectSelectOfFloats(p, keys);
    }
};

TEST_F(FewOfPeriods, OfLanesAndTurns) {
    for (int64_t cols : {600, 1200, 2500, 4000}) {
        for (int k : ksOf(shortRowsCase(rowsOf(cols), cols))) {
            for (int period :
                 {2, 8, 16, 31, 32, 33, 37, 64, 123, 128, 133, 256, 1024}) {
                for (int levels : {2, 1 << 20}) {
                    expectPeriods(cols, k, period, levels);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(FewOfPeriods, Small) {
    for (int64_t cols : {700, 1500}) {
        for (int k : {2, 4}) {
            expectPeriods(cols, k, 32, 4);
            expectPeriods(cols, k, 133, 1 << 20);
        }
    }
}

TEST_F(FewOfLanes, SmallOfEveryKernel) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (int64_t cols : {600, 1051, 1300, 2100}) {
            SelectCase c = shortRowsCase(5, cols);
            c.keyType = type;
            if (type != DataType::Float32 && cols < kLeastNarrowCols) {
                continue;
            }
            for (Values values : {Values::SomeNan, Values::FewDistinct}) {
                c.values = values;
                expectFew(c, {9, 16});
            }
            c.values = Values::Random;
            c.padding = 1;
            expectFew(c);
        }
    }
}

} // namespace
} // namespace faiss_bits::test
