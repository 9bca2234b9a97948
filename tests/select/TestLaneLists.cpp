/// The few best of rows of some hundred columns (short_rows/LaneLists.cuh, and
/// NarrowLists.cuh for keys of 16 bits): both sides of every edge, ties at the
/// limit and below it, few rows and many.

#include <algorithm>
#include <random>

#include "kernels/select/short_rows/ShortRowsPolicy.h"
#include "tests/select/Layouts.h"
#include "tests/select/SelectOfFloats.h"
#include "tests/select/ShortRowsCase.h"

namespace faiss_bits::test {
namespace {

/// So many rows that four lanes have each of up to 64 columns, more than are
/// few on one multiprocessor, and a warp that is not full; and fewer.
constexpr int64_t kMostRows = 261;
constexpr int64_t kManyRows = 37;
constexpr int64_t kFewRows = 5;
/// Of floats in many rows: longer ones are those of FewOfPacks.cuh, and from 80
/// columns on those of k > 4.
constexpr int64_t kMostColsOfMany = 93;
/// Of keys of 16 bits, so that 4 lanes have a row of up to 64 columns, 8, 16,
/// and 32.
constexpr int64_t kNarrowRows[] = {kMostRows, 133, 70, 5};

class LaneLists : public GpuTest {
   protected:
    /// Of what they could take, what the plan gives to them.
    static bool takes(const SelectCase& c, int k) {
        const SelectProblem p = shapeOf(c, k);
        return hasLaneLists(p) &&
                planSelection(p).toString() == "short_rows: lists of lanes";
    }
    static bool takes(
            int64_t rows,
            int64_t cols,
            int k,
            DataType type = DataType::Float32) {
        SelectCase c = shortRowsCase(rows, cols);
        c.keyType = type;
        return takes(c, k);
    }

    /// So many, or a few of columns of which lists take no more.
    static int64_t rowsThatTake(
            int64_t rows,
            int64_t cols,
            DataType type = DataType::Float32) {
        return type == DataType::Float32 && cols > kMostColsOfMany
                ? std::min(rows, kFewRows)
                : rows;
    }

    static std::vector<int> takenOf(
            const SelectCase& c,
            const std::vector<int>& ks) {
        std::vector<int> taken;
        for (int k : ks) {
            if (takes(c, k)) {
                taken.push_back(k);
            }
        }
        return taken;
    }

    static void expectLists(const SelectCase& c, const std::vector<int>& ks) {
        const std::vector<int> taken = takenOf(c, ks);
        ASSERT_FALSE(taken.empty()) << c.describe();
        expectSelects(c, taken);
    }
};

const std::vector<int> kKs = {2, 3, 4, 5, 7, 8};
const std::vector<int> kNarrowKs = {2, 3, 4, 5, 7, 8, 9, 13, 15, 16};
const int64_t kCols[] = {2,   3,   5,   8,   9,   15,  16,  17,  31,  32,  33,
                         47,  48,  49,  63,  64,  65,  79,  80,  92,  93,  94,
                         95,  96,  97,  127, 128, 129, 191, 192, 193, 250, 255,
                         256, 257, 300, 383, 384, 385, 500, 511, 512};

TEST_F(LaneLists, EveryValueAndLength) {
    for (Values values : kAllValues) {
        for (int64_t cols : kCols) {
            for (int64_t rows : {kMostRows, kManyRows, kFewRows}) {
                SelectCase c = shortRowsCase(rowsThatTake(rows, cols), cols);
                c.values = values;
                expectLists(c, kKs);
                c.largest = true;
                c.shift = 1;
                expectLists(c, kKs);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Keys of 16 bits: rows that begin and end in the middle of a word, or do not.
TEST_F(LaneLists, EveryNarrowValueAndLength) {
    std::vector<int64_t> lengths(std::begin(kCols), std::end(kCols));
    for (int64_t cols : {513, 700, 767, 768, 769, 1023, 1024, 1025, 2049}) {
        lengths.push_back(cols);
    }
    size_t turn = 0;
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (Values values : kAllValues) {
            for (int64_t cols : lengths) {
                SelectCase c = shortRowsCase(kNarrowRows[turn++ % 4], cols);
                c.keyType = type;
                c.values = values;
                expectLists(c, kNarrowKs);
                c.largest = true;
                c.shift = 1;
                expectLists(c, kNarrowKs);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(LaneLists, LongNarrowRows) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (int64_t cols : {2047, 2048, 3333, 8191, 16383, 16384}) {
            for (Values values :
                 {Values::FewDistinct, Values::SomeNan, Values::Random}) {
                SelectCase c = shortRowsCase(kFewRows, cols);
                c.keyType = type;
                c.values = values;
                expectLists(c, kNarrowKs);
                c.shift = 1;
                c.padding = 1;
                c.largest = true;
                expectLists(c, kNarrowKs);
            }
        }
    }
}

TEST_F(LaneLists, EveryTypeAtEveryAddress) {
    for (DataType type :
         {DataType::Float16, DataType::BFloat16, DataType::Float32}) {
        for (int64_t cols : {17, 50, 87, 110, 161, 200, 299, 512}) {
            for (size_t shift : {0, 1, 3, 5}) {
                SelectCase c =
                        shortRowsCase(kNarrowRows[(shift + 1) / 2 % 4], cols);
                if (type == DataType::Float32) {
                    c.rows = rowsThatTake(
                            shift == 0           ? kMostRows
                                    : shift == 3 ? kFewRows
                                                 : kManyRows,
                            cols);
                }
                c.keyType = type;
                c.shift = shift;
                c.padding = int64_t(shift % 3);
                c.largest = shift % 2 == 1;
                for (Values values :
                     {Values::FewDistinct, Values::SomeNan, Values::Random}) {
                    c.values = values;
                    expectLists(c, kNarrowKs);
                }
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(LaneLists, EveryNumberOfRows) {
    for (int64_t rows : {1, 2, 15, 16, 17, 31, 33, 64, 127, 1000, 5003}) {
        for (int64_t cols : {20, 60, 90, 120, 200, 400}) {
            SelectCase c = shortRowsCase(rowsThatTake(rows, cols), cols);
            expectLists(c, {2, 3, 8});
            c.rows = rows;
            c.keyType = DataType::Float16;
            expectLists(c, {2, 3, 8, 16});
        }
    }
}

TEST_F(LaneLists, Layouts) {
    for (int64_t rows : {kFewRows, int64_t(50), kMostRows}) {
        for (int64_t cols : {30, 81, 201, 301}) {
            for (DataType type : {DataType::Float32, DataType::BFloat16}) {
                SelectCase plain =
                        shortRowsCase(rowsThatTake(rows, cols, type), cols);
                plain.keyType = type;
                forEachLayout(plain, [&](const SelectCase& c) {
                    expectLists(c, kNarrowKs);
                });
            }
        }
    }
}

/// The best of a row at even distances, or equal: a lane may have all of them,
/// and ties at the limit may begin in any lane.
TEST_F(LaneLists, Periods) {
    for (int64_t cols : {32, 60, 90, 128, 200, 500}) {
        for (int period : {1, 2, 3, 7, 8, 16, 31, 32, 33, 64, 200}) {
            std::mt19937 random(unsigned(period * 1000 + cols));
            const int64_t rows =
                    rowsThatTake(period % 2 == 1 ? kMostRows : kManyRows, cols);
            std::vector<float> keys(rows * cols);
            for (int64_t i = 0; i < rows * cols; ++i) {
                const int64_t row = i / cols;
                const float level = float((i % cols + 3 * row) % period);
                keys[i] = level + (row % 2 ? 0 : float(random() % 4) / 4.0f);
            }
            const SelectCase c = shortRowsCase(rows, cols);
            const std::vector<int> taken = takenOf(c, kKs);
            ASSERT_FALSE(taken.empty()) << c.describe();
            for (int k : taken) {
                const SelectProblem p = shapeOf(c, k);
                SCOPED_TRACE(
                        testing::Message() << cols << " columns, k = " << k
                                           << ", period " << period);
                expectSelectOfFloats(p, keys);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(LaneLists, SmallOfEveryKernel) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (int64_t cols :
             {20, 60, 90, 120, 161, 200, 300, 400, 700, 900, 1200}) {
            for (int64_t rows : kNarrowRows) {
                SelectCase c =
                        shortRowsCase(rowsThatTake(rows, cols, type), cols);
                c.keyType = type;
                c.values = Values::FewDistinct;
                if (cols <= 512 || type != DataType::Float32) {
                    expectLists(c, {2, 4, 8, 16});
                }
            }
        }
    }
}

TEST_F(LaneLists, TakesFewOfShortRowsWithoutBias) {
    EXPECT_TRUE(takes(10, 512, 8));
    EXPECT_FALSE(takes(10, 513, 8));
    EXPECT_TRUE(takes(17, 79, 8));
    EXPECT_FALSE(takes(17, 80, 8));
    EXPECT_TRUE(takes(16, 80, 8));
    EXPECT_TRUE(takes(17, kMostColsOfMany, 4));
    EXPECT_FALSE(takes(17, kMostColsOfMany, 5));
    EXPECT_FALSE(takes(17, kMostColsOfMany + 1, 4));
    EXPECT_TRUE(takes(16, kMostColsOfMany + 1, 4));
    EXPECT_FALSE(takes(10, 512, 9));
    EXPECT_FALSE(takes(10, 512, 1));
    EXPECT_TRUE(takes(10, 2, 2));
    EXPECT_TRUE(takes(10, 16, 2));
    EXPECT_FALSE(takes(10, 16, 3));
    EXPECT_TRUE(takes(10, 17, 8));
    EXPECT_FALSE(takes(10, 1, 2));
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        EXPECT_TRUE(takes(10, 16384, 8, type));
        EXPECT_FALSE(takes(10, 16385, 8, type));
        EXPECT_TRUE(takes(10, 1024, 16, type));
        EXPECT_FALSE(takes(10, 1025, 16, type));
        EXPECT_FALSE(takes(10, 1024, 17, type));
        EXPECT_TRUE(takes(10, 64, 8, type));
        EXPECT_FALSE(takes(10, 64, 9, type));
        EXPECT_TRUE(takes(10, 65, 9, type));
        EXPECT_TRUE(takes(10, 256, 9, type));
        EXPECT_FALSE(takes(10, 257, 9, type));
        EXPECT_FALSE(takes(10, 257, 10, type));
        EXPECT_TRUE(takes(10, 257, 11, type));
        EXPECT_FALSE(takes(10, 16, 3, type));
    }
    SelectProblem p;
    p.rows = 10;
    p.cols = 100;
    p.k = 4;
    EXPECT_TRUE(hasLaneLists(p));
    p.colBiasGiven = true;
    EXPECT_FALSE(hasLaneLists(p));
}

} // namespace
} // namespace faiss_bits::test
