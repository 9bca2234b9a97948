/// A few of the best of rows that a block holds (short_rows/FewOfBlock.cuh):
/// both sides of every edge, rows that begin anywhere in a line, keys that meet
/// in few threads, ties, and NaN among the best.

#include <random>

#include "kernels/select/short_rows/FewOfBlockPlan.h"
#include "tests/select/Layouts.h"
#include "tests/select/SelectOfFloats.h"
#include "tests/select/ShortRowsCase.h"

namespace faiss_bits::test {
namespace {

/// More rows than are few on one multiprocessor.
constexpr int64_t kRows = 17;

/// Both sides of where kernels change.
const std::vector<int> kSomeK = {2, 31, 40, 41, 63, 64};

class FewOfBlock : public GpuTest {
   protected:
    static std::vector<int> takenOf(
            const SelectCase& c,
            const std::vector<int>& ks) {
        std::vector<int> taken;
        for (int k : ks) {
            if (fewOfBlockItems(shapeOf(c, k)) > 0) {
                taken.push_back(k);
            }
        }
        return taken;
    }

    static void expectFew(
            const SelectCase& c,
            const std::vector<int>& ks = kSomeK) {
        const std::vector<int> taken = takenOf(c, ks);
        ASSERT_FALSE(taken.empty()) << c.describe();
        expectSelects(c, taken);
    }

    /// Both sides of where kernels change, and some between.
    static std::vector<int64_t> edges() {
        std::vector<int64_t> cols;
        for (idx_t one = 2; one <= 16384; ++one) {
            const int items =
                    fewOfBlockItems(shapeOf(shortRowsCase(kRows, one), 64));
            const int before =
                    fewOfBlockItems(shapeOf(shortRowsCase(kRows, one - 1), 64));
            if (items != before && before > 0) {
                cols.push_back(one - 1);
            }
            if (items > 0 && (items != before || one % 2000 == 181)) {
                cols.push_back(one);
            }
        }
        return cols;
    }

    static void expectRows(
            int64_t cols,
            int k,
            const std::vector<float>& keys) {
        const SelectProblem p = shapeOf(shortRowsCase(kRows, cols), k);
        ASSERT_GT(fewOfBlockItems(p), 0) << cols << " k=" << k;
        SCOPED_TRACE(testing::Message() << cols << " columns, k = " << k);
        expectSelectOfFloats(p, keys);
    }
};

TEST_F(FewOfBlock, EveryValueAndLength) {
    for (Values values : kAllValues) {
        for (int64_t cols : edges()) {
            SelectCase c = shortRowsCase(kRows, cols);
            c.values = values;
            expectFew(c);
            c.largest = true;
            c.shift = 1;
            expectFew(c, {2, 31, 64});
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(FewOfBlock, EveryAddress) {
    for (int64_t cols : edges()) {
        for (size_t shift : {0, 1, 31, 127}) {
            for (int64_t padding : {0, 1, 32, 127}) {
                SelectCase c = shortRowsCase(kRows, cols);
                c.shift = shift;
                c.padding = padding;
                c.largest = padding == 1;
                for (Values values : {Values::FewDistinct, Values::Random}) {
                    c.values = values;
                    expectFew(c, {7, 45});
                }
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// More blocks than run at a time.
TEST_F(FewOfBlock, ManyRows) {
    for (int64_t cols : {2049, 5181, 8065, 10113}) {
        expectFew(shortRowsCase(1001, cols), {2, 31, 64});
    }
}

TEST_F(FewOfBlock, Layouts) {
    for (int64_t cols : {3500, 5181, 9001}) {
        forEachLayout(shortRowsCase(20, cols), [&](const SelectCase& c) {
            expectFew(c, {2, 31, 64});
        });
    }
}

/// The best of a row at even distances, or equal: a number of a thread may hide
/// all of them.
TEST_F(FewOfBlock, Periods) {
    for (int64_t cols : {2500, 4161, 7001, 9001}) {
        for (int period :
             {1, 2, 3, 16, 31, 32, 33, 64, 128, 256, 512, 1000, 2048}) {
            for (int levels : {4, 1 << 20}) {
                std::mt19937 random(unsigned(period * 1000 + cols));
                std::vector<float> keys(kRows * cols);
                for (int64_t i = 0; i < kRows * cols; ++i) {
                    const int64_t row = i / cols;
                    const float level = float((i % cols + 3 * row) % period);
                    keys[i] = level +
                            (row % 2 ? 0
                                     : float(random() % levels) /
                                             float(levels));
                }
                for (int k :
                     takenOf(shortRowsCase(kRows, cols), {2, 31, 41, 64})) {
                    expectRows(cols, k, keys);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Fewer numbers than k, here and there none, so that NaN is among the best;
/// and as many as k in one thread.
TEST_F(FewOfBlock, FewNumbers) {
    for (int64_t cols : {5184, 8000, 9600}) {
        for (int k : takenOf(shortRowsCase(kRows, cols), {2, 3, 31, 64})) {
            std::vector<float> keys(kRows * cols, NAN);
            for (int64_t row = 0; row < kRows; ++row) {
                const int numbers = int(row) % 3 == 0 ? k + int(row) - 8
                                                      : int(row) * k / 16;
                for (int i = 0; i < numbers; ++i) {
                    const int64_t place =
                            row % 2 ? i * 128 + i * 128 / cols : cols - 1 - i;
                    const int64_t at = place % cols;
                    keys[row * cols + at] = float(i % 3);
                }
            }
            expectRows(cols, k, keys);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// All of the best with one thread, or with few: more than there is room for.
TEST_F(FewOfBlock, BestOfFewThreads) {
    // Rows begin where a tile of 128 keys does.
    for (int64_t cols : {5248, 8064, 9600}) {
        for (int spread : {1, 4, 32}) {
            const int64_t threads = cols > 8065 ? 256 : 128;
            std::vector<float> keys(kRows * cols);
            for (int64_t i = 0; i < kRows * cols; ++i) {
                const int64_t row = i / cols;
                const int64_t column = i % cols;
                // Threads of one warp, turned from item to item.
                const int64_t turn = column / threads * 37 % 128;
                const int64_t thread = column % threads ^ turn;
                const bool isBest =
                        thread / 32 == row % 2 && thread % 32 < spread;
                keys[i] = isBest ? -float(column * 7 % 1000) : float(column);
            }
            for (int k : takenOf(shortRowsCase(kRows, cols), {2, 31, 41, 64})) {
                expectRows(cols, k, keys);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FewOfBlock, SmallOfEveryKernel) {
    for (int64_t cols : edges()) {
        SelectCase c = shortRowsCase(17, cols);
        for (Values values :
             {Values::SomeNan, Values::FewDistinct, Values::Random}) {
            c.values = values;
            c.shift = size_t(cols % 32);
            expectFew(c, {2, 33, 64});
        }
    }
}

} // namespace
} // namespace faiss_bits::test
