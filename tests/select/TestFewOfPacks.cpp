/// A few of the best of rows that eight lanes hold (short_rows/FewOfPacks.cuh):
/// both sides of every edge, rows that begin anywhere in a pack, keys that meet
/// in few lanes, ties, and NaN among the best.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/select/short_rows/FewOfPacksPlan.h"
#include "tests/select/Layouts.h"
#include "tests/select/SelectOfFloats.h"
#include "tests/select/ShortRowsCase.h"

namespace faiss_bits::test {
namespace {

/// More rows than are few on one multiprocessor, and a warp that is not full.
constexpr int64_t kRows = 37;

class FewOfPacks : public GpuTest {
   protected:
    static std::vector<int> takenOf(
            const SelectCase& c,
            const std::vector<int>& ks) {
        std::vector<int> taken;
        for (int k : ks) {
            if (fewOfPacksShape(shapeOf(c, k)).packs > 0) {
                taken.push_back(k);
            }
        }
        return taken;
    }

    static void expectFew(
            const SelectCase& c,
            const std::vector<int>& ks = {2, 3, 4, 8, 9, 16}) {
        const std::vector<int> taken = takenOf(c, ks);
        ASSERT_FALSE(taken.empty()) << c.describe();
        expectSelects(c, taken);
    }

    /// Both sides of where kernels change.
    static std::vector<int64_t> edges() {
        std::vector<int64_t> cols = {kLeastPackCols, 85, 100, 257, 400, 700};
        for (int lanes : {8, 16}) {
            for (int packs = kLeastPacks; packs <= kMostPacks;
                 packs = packsAfter(packs)) {
                const int most = mostColsOfPacks(lanes, packs);
                for (int one : {most, most + 1}) {
                    if (one <= kMostPackCols && lanesOfPacks(one) == lanes) {
                        cols.push_back(one);
                    }
                }
            }
        }
        return cols;
    }

    static void expectRows(
            int64_t cols,
            int k,
            const std::vector<float>& keys) {
        const SelectProblem p = shapeOf(shortRowsCase(kRows, cols), k);
        ASSERT_GT(fewOfPacksShape(p).packs, 0) << cols << " k=" << k;
        SCOPED_TRACE(testing::Message() << cols << " columns, k = " << k);
        expectSelectOfFloats(p, keys);
    }
};

TEST_F(FewOfPacks, EveryValueAndLength) {
    for (Values values : kAllValues) {
        for (int64_t cols : edges()) {
            SelectCase c = shortRowsCase(kRows, cols);
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

TEST_F(FewOfPacks, EveryAddress) {
    for (int64_t cols : edges()) {
        for (size_t shift : {0, 1, 2, 3}) {
            for (int64_t padding : {0, 1, 2, 4}) {
                SelectCase c = shortRowsCase(kRows, cols);
                c.shift = shift;
                c.padding = padding;
                c.largest = padding == 1;
                for (Values values :
                     {Values::FewDistinct, Values::SomeNan, Values::Random}) {
                    c.values = values;
                    expectFew(c, {3, 7, 16});
                }
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Warps and rows of a warp that are not there, and more blocks than run at a
/// time.
TEST_F(FewOfPacks, EveryNumberOfRows) {
    for (int64_t rows : {17, 18, 19, 20, 31, 32, 33, 127, 129, 1000, 5003}) {
        for (int64_t cols : {85, 100, 270, 500, 600}) {
            expectFew(shortRowsCase(rows, cols), {2, 7, 16});
        }
    }
}

TEST_F(FewOfPacks, Layouts) {
    for (int64_t cols : {81, 100, 257, 381, 601}) {
        forEachLayout(shortRowsCase(50, cols), [&](const SelectCase& c) {
            expectFew(c);
        });
    }
}

/// The best of a row at even distances, or equal: a number of a lane may hide
/// all of them.
TEST_F(FewOfPacks, Periods) {
    for (int64_t cols : {90, 96, 128, 257, 400, 500, 800}) {
        for (int period : {1, 2, 3, 4, 8, 16, 31, 32, 33, 64, 96, 128, 200}) {
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
                     takenOf(shortRowsCase(kRows, cols), {2, 3, 4, 8, 9, 16})) {
                    expectRows(cols, k, keys);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// The best are 32 keys, which is what there is room for at most, in groups of
/// equal ones, so that ties begin at any rank; in any columns, or the last.
TEST_F(FewOfPacks, GroupsOfEqualKeys) {
    constexpr int kBest = 32;
    for (int64_t cols : {85, 120, 300, 509, 800, kMostPackCols}) {
        for (int group : {2, 3, 5, 8, 15, 16, 17, 30, 31}) {
            for (bool isLast : {false, true}) {
                std::mt19937 random(unsigned(group * 1000 + cols));
                std::vector<float> keys(kRows * cols);
                for (int64_t row = 0; row < kRows; ++row) {
                    float* its = keys.data() + row * cols;
                    std::iota(its, its + cols, 0.0f);
                    std::shuffle(
                            isLast ? its + cols - kBest : its,
                            its + cols,
                            random);
                    for (int64_t c = 0; c < cols; ++c) {
                        const float place = isLast ? cols - 1 - its[c] : its[c];
                        its[c] = place < kBest
                                ? std::floor((place + row % group) / group)
                                : place + kBest;
                    }
                }
                for (int k :
                     takenOf(shortRowsCase(kRows, cols),
                             {2, 3, 4, 8, 9, 15, 16})) {
                    expectRows(cols, k, keys);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Rows of a warp that have different ties, or none: where one has more keys
/// within its limit than there is room for, all of them are looked through.
TEST_F(FewOfPacks, RowsOfAWarpDiffer) {
    for (int64_t cols : {80, 97, 257, 342, 509, 800}) {
        for (int k : takenOf(shortRowsCase(kRows, cols), {2, 3, 6, 8, 9, 16})) {
            for (int turn = 0; turn < 6; ++turn) {
                std::mt19937 random(unsigned(cols * 1000 + k * 10 + turn));
                std::vector<float> keys(kRows * cols);
                for (int64_t i = 0; i < kRows * cols; ++i) {
                    const int64_t row = i / cols;
                    const int64_t column = i % cols;
                    const int any = int(random() % 65536);
                    const float ways[] = {
                            1.0f,                // equal
                            float(any % 16),     // few values
                            float(any) - 32768,  // hardly a tie
                            column % 7 < 2 ? NAN // of some, the least twice
                                           : float(column / 2),
                            column * k % cols < k - 1 ? float(any) // k-th ties
                                                      : 65536.0f,
                            any % 4 < 3 ? -INFINITY : float(any),
                            any % 64 > 0 ? NAN : float(any)};
                    keys[i] = ways[(row * (turn + 1) + row / 4) % 7];
                }
                expectRows(cols, k, keys);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Fewer numbers than k, here and there none, so that NaN is among the best;
/// and as many as k in one lane.
TEST_F(FewOfPacks, FewNumbers) {
    for (int64_t cols : {80, 94, 257, 509, 900}) {
        for (int k : takenOf(shortRowsCase(kRows, cols), {2, 3, 4, 8, 9, 16})) {
            std::vector<float> keys(kRows * cols, NAN);
            for (int64_t row = 0; row < kRows; ++row) {
                for (int i = 0; i < row % (k + 3); ++i) {
                    const int64_t at = row % 2 ? i * 32 % cols : cols - 1 - i;
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

/// The best at even distances, and all of them with one lane.
TEST_F(FewOfPacks, BestOfOneLane) {
    for (int64_t cols : {189, 317, 509, 1000}) {
        const int lanes = lanesOfPacks(int(cols));
        // As PackBits::turn lays them out.
        const auto laneOf = [&](int64_t place) {
            const int64_t pack = place / (lanes * 4);
            return (place / 4 % lanes) ^ (pack * lanes / 16);
        };
        for (int step : {0, 32, 64, 128}) {
            std::vector<float> keys(kRows * cols);
            for (int64_t i = 0; i < kRows * cols; ++i) {
                const int64_t row = i / cols;
                const int64_t column = i % cols;
                const bool isBest = step > 0
                        ? (column + row) % step == 0
                        : laneOf(column + row * cols % 4) == row % lanes;
                keys[i] = float(isBest ? -column : column % 7 + 1);
            }
            for (int k : takenOf(shortRowsCase(kRows, cols), {2, 4, 8, 16})) {
                expectRows(cols, k, keys);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FewOfPacks, SmallOfEveryKernel) {
    for (int64_t cols : edges()) {
        SelectCase c = shortRowsCase(17, cols);
        for (Values values :
             {Values::SomeNan, Values::FewDistinct, Values::Random}) {
            c.values = values;
            c.shift = size_t(cols % 4);
            expectFew(c, {2, 8, 16});
        }
    }
}

} // namespace
} // namespace faiss_bits::test
