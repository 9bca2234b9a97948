/// Short rows: every kernel of kernels/select/short_rows/Policies.inc, at both
/// sides of what it takes.

#include "kernels/select/short_rows/ShortRowsPolicy.h"
#include "tests/common/ExpectError.h"
#include "tests/select/SelectHarness.h"

namespace faiss_bits::test {
namespace {

class ShortRows : public GpuTest {
   protected:
    static SelectCase of(int64_t rows, int64_t cols) {
        SelectCase c;
        c.rows = rows;
        c.cols = cols;
        c.algorithm = SelectAlgorithm::ShortRows;
        return c;
    }

    /// k around the edges of the policies, up to the row's length or 512.
    static std::vector<int> ksOf(int64_t cols) {
        std::vector<int> ks;
        for (int k : {1,   2,   3,   7,   8,   9,   12,  13,  16,  17,
                      31,  32,  33,  40,  41,  63,  64,  65,  99,  127,
                      128, 129, 255, 256, 257, 511, 512, 513, 1023}) {
            if (k < cols && (cols <= 1024 || k <= 512)) {
                ks.push_back(k);
            }
        }
        if (cols <= 1024) {
            ks.push_back(int(cols));
        }
        if (cols < 1024) {
            ks.push_back(int(cols) + 1); // whose last place is empty
        }
        return ks;
    }
};

const int64_t kCols[] = {1,   2,    7,    8,    9,    15,   16,   17,
                         31,  32,   33,   63,   64,   65,   100,  127,
                         128, 129,  255,  256,  257,  511,  512,  513,
                         777, 1023, 1024, 1025, 2048, 2049, 5000, 16384};

TEST_F(ShortRows, EveryValueAndLength) {
    for (Values values : kAllValues) {
        for (int64_t cols : kCols) {
            SelectCase c = of(37, cols);
            c.values = values;
            expectSelects(c, ksOf(cols));
            // Not few.
            c.multiprocessors = 1;
            c.largest = true;
            expectSelects(c, ksOf(cols));
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(ShortRows, EveryType) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (int64_t cols : kCols) {
            for (bool largest : {false, true}) {
                SelectCase c = of(35, cols);
                c.keyType = type;
                c.largest = largest;
                for (Values values :
                     {Values::FewDistinct, Values::SomeNan, Values::Random}) {
                    c.values = values;
                    c.multiprocessors = values == Values::SomeNan ? 0 : 1;
                    expectSelects(c, ksOf(cols));
                }
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Keys of 16 bits come two at a time: rows that begin and end in the middle of
/// a word, or fill their lanes.
TEST_F(ShortRows, NarrowRowsAtEveryAddress) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (Values values : kAllValues) {
            for (int64_t cols :
                 {2, 9, 16, 31, 32, 64, 127, 128, 256, 500, 512, 1023, 1024}) {
                SelectCase c = of(35, cols);
                c.keyType = type;
                c.values = values;
                c.multiprocessors = 1;
                for (size_t shift : {1, 2}) {
                    c.shift = shift;
                    c.padding = int64_t(cols % 3);
                    c.largest = shift == 1;
                    expectSelects(c, ksOf(cols));
                }
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(ShortRows, Biases) {
    for (int64_t cols : kCols) {
        for (bool rowBias : {false, true}) {
            for (bool clamp : {false, true}) {
                SelectCase c = of(21, cols);
                c.bias = true;
                c.rowBias = rowBias;
                c.clampAtZero = clamp;
                expectSelects(c, ksOf(cols));
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// The last block and the last warp have fewer rows.
TEST_F(ShortRows, EveryNumberOfRows) {
    for (int64_t rows : {1, 2, 3, 4, 5, 15, 16, 17, 63, 65, 1000, 100003}) {
        for (int64_t cols : {20, 100, 300, 1000, 3000}) {
            if (rows * cols < 5000000) {
                expectSelects(of(rows, cols), {1, 10, 20});
            }
        }
    }
}

TEST_F(ShortRows, Layouts) {
    for (int64_t cols : {10, 100, 200, 600, 2500}) {
        SelectCase c = of(50, cols);
        c.padding = 3;
        c.shift = 1;
        c.outPadding = 5;
        c.idType = IdType::Int32;
        expectSelects(c, {1, 7, 10});
        c.givenIds = true;
        c.idPadding = 2;
        expectSelects(c, {1, 7, 10});
        c.sharedIds = true;
        c.idPadding = 0;
        expectSelects(c, {1, 7, 10});
        c = of(50, cols);
        c.sorted = false;
        c.idOffset = 77;
        expectSelects(c, {1, 7, 10});
        c.dropNan = true;
        c.values = Values::SomeNan;
        expectSelects(c, {1, 7, 10});
    }
}

TEST_F(ShortRows, Refusals) {
    SelectProblem p;
    p.rows = 3;
    p.algorithm = SelectAlgorithm::ShortRows;
    p.cols = 1024;
    p.k = 1024;
    EXPECT_NO_THROW(planSelection(p));
    p.cols = 1025;
    EXPECT_TRUE(throwsNaming(
            [&] { planSelection(p); }, "short_rows", "cols = 1025"));
    p.k = 512;
    p.cols = 16384;
    EXPECT_NO_THROW(planSelection(p));
    p.cols = 16385;
    EXPECT_TRUE(throwsNaming(
            [&] { planSelection(p); }, "short_rows", "cols = 16385"));
    p.k = 1;
    EXPECT_NO_THROW(planSelection(p));
    p.cols = 65537;
    EXPECT_TRUE(throwsNaming(
            [&] { planSelection(p); }, "short_rows", "cols = 65537"));
    p.cols = 1024;
    p.k = 1025;
    EXPECT_TRUE(
            throwsNaming([&] { planSelection(p); }, "short_rows", "k = 1025"));
}

TEST_F(ShortRows, SmallOfEveryKernel) {
    struct Largest {
        int64_t mostCols;
        int mostK;
        int multiprocessors; // so few that rows are not, or 0
    };
    const Largest largest[] = {
#define BITS_SHORT_ROWS(lanes, items, sorted, mostCols, mostK) \
    {mostCols, mostK, 1},
#define BITS_FEW_SHORT_ROWS(lanes, items, sorted, mostCols, mostK) \
    {mostCols, mostK, 0},
#include "kernels/select/short_rows/Policies.inc"
#undef BITS_SHORT_ROWS
#undef BITS_FEW_SHORT_ROWS
    };
    for (auto [mostCols, mostK, multiprocessors] : largest) {
        for (bool bias : {false, true}) {
            // Of those for long rows, some chunks.
            SelectCase c =
                    of(multiprocessors > 0 ? kFewShortRows + 1 : 11,
                       std::min<int64_t>(mostCols, 2100));
            c.multiprocessors = multiprocessors;
            c.bias = bias;
            c.values = Values::FewDistinct;
            expectSelects(c, {mostK});
        }
    }
}

/// k = 1 of rows that are longer than those of other k, up to the longest.
TEST_F(ShortRows, LeastOfLongRows) {
    for (DataType type :
         {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
        for (Values values : kAllValues) {
            for (int64_t cols : {16385, 20993, 65535, 65536}) {
                SelectCase c = of(17, cols);
                c.keyType = type;
                c.values = values;
                c.shift = cols % 3;
                c.padding = cols % 5;
                c.multiprocessors = 1;
                c.largest = cols % 2 == 0;
                expectSelects(c, {1});
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// So many rows that four lanes have each, and one more warp that is not full.
TEST_F(ShortRows, LeastOfManyRows) {
    for (int64_t rows : {132 * 256, 132 * 256 + 1, 132 * 256 + 39}) {
        for (int64_t cols : {1, 3, 4, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65}) {
            for (DataType type : {DataType::Float32, DataType::BFloat16}) {
                for (Values values :
                     {Values::FewDistinct, Values::SomeNan, Values::Random}) {
                    SelectCase c = of(rows, cols);
                    c.keyType = type;
                    c.values = values;
                    c.padding = cols % 3;
                    c.largest = rows % 2 == 1;
                    expectSelects(c, {1});
                    c.keyType = DataType::Float32;
                    c.largest = false;
                    c.bias = true;
                    expectSelects(c, {1});
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// k = 1 has kernels of its own.
TEST_F(ShortRows, SmallLeast) {
    for (const int multiprocessors : {0, 1}) { // few rows, and not
        for (int64_t cols : {20, 50, 100, 200, 300, 4500}) {
            for (bool bias : {false, true}) {
                SelectCase c = of(kFewShortRows + 1, cols);
                c.multiprocessors = multiprocessors;
                c.bias = bias;
                c.values = Values::SomeNan;
                expectSelects(c, {1});
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
