/// A few of the best of many short rows (short_rows/FewOfRows.cuh): both sides
/// of every edge, and keys that meet in few lanes.

#include <algorithm>
#include <random>

#include "kernels/select/short_rows/FewOfRowsPlan.h"
#include "tests/select/SelectHarness.h"

namespace faiss_bits::test {
namespace {

/// More rows than are few on one multiprocessor, and a set that is not whole.
constexpr int64_t kRows = 37;

class FewOfRows : public GpuTest {
   protected:
    static SelectCase of(int64_t rows, int64_t cols) {
        SelectCase c;
        c.rows = rows;
        c.cols = cols;
        c.multiprocessors = 1;
        c.algorithm = SelectAlgorithm::ShortRows;
        return c;
    }

    static FewOfRowsPlan planOf(const SelectCase& c, int k) {
        SelectProblem p;
        p.rows = c.rows;
        p.cols = c.cols;
        p.k = k;
        p.keyType = c.keyType;
        p.device = deviceOf(c);
        return planFewOfRows(p);
    }

    /// At both sides of what each kernel takes.
    static std::vector<int> ksOf(const SelectCase& c) {
        std::vector<int> ks;
        for (int k : {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 31, 32, 33}) {
            if (planOf(c, k).lanes > 0) {
                ks.push_back(k);
            }
        }
        return ks;
    }

    static void expectFew(const SelectCase& c, std::vector<int> ks = {}) {
        ks = ks.empty() ? ksOf(c) : ks;
        ASSERT_FALSE(ks.empty()) << c.describe();
        for (int k : ks) {
            ASSERT_GT(planOf(c, k).lanes, 0) << c.describe() << " k=" << k;
        }
        expectSelects(c, ks);
    }
};

const int64_t kCols[] = {
        513,
        600,
        640,
        1023,
        1024,
        1051,
        1152,
        1279,
        1280,
        1281,
        1905,
        2559,
        2560};

/// Of keys of 16 bits; NarrowLists.cuh and NarrowRow.cuh take others.
constexpr int64_t kLeastNarrowCols = 1025;
constexpr int64_t kMostNarrowCols = 1280;

TEST_F(FewOfRows, EveryValueAndLength) {
    for (Values values : kAllValues) {
        for (int64_t cols : kCols) {
            SelectCase c = of(kRows, cols);
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

TEST_F(FewOfRows, EveryTypeAtEveryAddress) {
    for (DataType type :
         {DataType::Float16, DataType::BFloat16, DataType::Float32}) {
        for (int64_t cols : {600, 700, 1025, 1100, 1280, 1300, 2560}) {
            if (type != DataType::Float32 &&
                (cols < kLeastNarrowCols || cols > kMostNarrowCols)) {
                continue;
            }
            for (size_t shift : {0, 1, 2, 3, 5, 7}) {
                SelectCase c = of(kRows, cols);
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

/// Warps without rows, with one and with several, and lanes without one.
TEST_F(FewOfRows, EveryNumberOfRows) {
    for (int64_t rows : {17, 18, 31, 33, 63, 64, 65, 127, 129, 1000, 5003}) {
        for (int64_t cols : {700, 1500}) {
            expectFew(of(rows, cols), {2, 4});
            SelectCase c = of(
                    rows, std::clamp(cols, kLeastNarrowCols, kMostNarrowCols));
            c.keyType = DataType::Float16;
            expectFew(c, {17, 32});
        }
    }
}

TEST_F(FewOfRows, Layouts) {
    for (int64_t cols : {601, 1200, 2500}) {
        for (DataType type : {DataType::Float32, DataType::BFloat16}) {
            const bool isNarrow = type != DataType::Float32;
            if (isNarrow &&
                (cols < kLeastNarrowCols || cols > kMostNarrowCols)) {
                continue;
            }
            const std::vector<int> ks = isNarrow ? std::vector<int>{17, 20, 32}
                                                 : std::vector<int>{2, 3, 4};
            SelectCase c = of(50, cols);
            c.keyType = type;
            c.padding = 3;
            c.shift = 1;
            c.outPadding = 5;
            c.idType = IdType::Int32;
            expectFew(c, ks);
            c.givenIds = true;
            c.idPadding = 2;
            expectFew(c, ks);
            c.sharedIds = true;
            c.idPadding = 0;
            expectFew(c, ks);
            c = of(50, cols);
            c.keyType = type;
            c.sorted = false;
            c.idOffset = 77;
            expectFew(c, ks);
            c.dropNan = true;
            c.values = Values::SomeNan;
            expectFew(c, ks);
        }
    }
}

/// Biases, k = 1 and rows that are few go other ways.
TEST_F(FewOfRows, TakesManyRowsWithoutBias) {
    SelectProblem p;
    p.rows = 1000;
    p.cols = 600;
    p.k = 4;
    p.device.multiprocessors = 10;
    EXPECT_GT(planFewOfRows(p).lanes, 0);
    p.rows = 160;
    EXPECT_EQ(planFewOfRows(p).lanes, 0);
    p.rows = 1000;
    p.k = 1;
    EXPECT_EQ(planFewOfRows(p).lanes, 0);
    p.k = 11;
    EXPECT_EQ(planFewOfRows(p).lanes, 0);
    p.k = 4;
    p.cols = 512;
    EXPECT_EQ(planFewOfRows(p).lanes, 0);
    p.cols = 600;
    p.colBiasGiven = true;
    EXPECT_EQ(planFewOfRows(p).lanes, 0);
}

/// The best of a row at even distances, or equal: a lane may have all of them.
class FewOfPeriods : public FewOfRows {
   protected:
    static void expectPeriods(int64_t cols, int k, int period, int levels) {
        SelectCase c = of(kRows, cols);
        ASSERT_GT(planOf(c, k).lanes, 0) << cols << " k=" << k;
        std::mt19937 random(7);
        std::vector<float> keys(c.rows * cols);
        for (int64_t i = 0; i < c.rows * cols; ++i) {
            const int64_t row = i / cols;
            const float level = float((i % cols + 3 * row) % period);
            // Rows of as many values as the period, or with a little more.
            keys[i] = level +
                    (row % 2 ? 0 : float(random() % levels) / float(levels));
        }
        const DeviceBuffer<float> deviceKeys(keys);
        DeviceBuffer<float> outKeys(c.rows * k, 0xCD);
        DeviceBuffer<int64_t> outIds(c.rows * k, 0xCD);
        SelectProblem p;
        p.rows = c.rows;
        p.cols = cols;
        p.k = k;
        p.algorithm = c.algorithm;
        p.device = deviceOf(c);
        p.keys = deviceKeys.data();
        p.outKeys = outKeys.data();
        p.outIds = outIds.data();
        ASSERT_EQ(selectWorkspaceBytes(p), 0u);
        runSelect(p, {}, nullptr);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        const std::vector<float> found = outKeys.download();
        const std::vector<int64_t> ids = outIds.download();
        for (int64_t r = 0; r < c.rows; ++r) {
            const RowOfKeys row{keys.data() + r * cols, cols};
            ASSERT_TRUE(isTopKOfRow(
                    row,
                    topKOfRow(row.keys, cols, nullptr, 0, k, false),
                    found.data() + r * k,
                    ids.data() + r * k,
                    k,
                    0))
                    << "row " << r << " of " << cols << ", k = " << k
                    << ", period " << period;
        }
    }
};

TEST_F(FewOfPeriods, OfLanesAndTiles) {
    for (int64_t cols : {600, 1200, 2500}) {
        for (int k : ksOf(of(kRows, cols))) {
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

TEST_F(FewOfRows, SmallOfEveryKernel) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (int64_t cols : {1051, 1300}) {
            SelectCase c = of(21, cols);
            c.keyType = type;
            if (type != DataType::Float32 && cols > kMostNarrowCols) {
                continue;
            }
            c.values = Values::SomeNan;
            expectFew(c, {type == DataType::Float32 ? 4 : 20});
            c.values = Values::Random;
            c.padding = 1;
            expectFew(c);
        }
    }
}

} // namespace
} // namespace faiss_bits::test
