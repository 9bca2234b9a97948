/// Rows that are NaN but for some numbers, of which many are infinite: the
/// limit of a sample then lies between infinity and NaN, where no key is.

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "kernels/select/Select.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

class SelectNan : public GpuTest {
   protected:
    /// One key in `numbersOf` is a number, one in three of these infinite.
    void expectRight(
            int64_t rows,
            int64_t cols,
            int k,
            int numbersOf,
            bool drop) {
        SCOPED_TRACE("one number in " + std::to_string(numbersOf));
        std::mt19937 random(uint32_t(rows + 7 * cols + 31 * k + numbersOf));
        std::vector<float> keys(rows * cols, std::nanf(""));
        for (float& key : keys) {
            if (random() % numbersOf == 0) {
                key = random() % 3 == 0 ? HUGE_VALF
                                        : std::ldexp(
                                                  float(random() % 1000),
                                                  int(random() % 60) - 30);
            }
        }
        expectRight(keys, rows, cols, k, drop);
    }

    /// Every row's k least, equal keys by their columns, NaN last.
    void expectRight(
            const std::vector<float>& keys,
            int64_t rows,
            int64_t cols,
            int k,
            bool drop) {
        const DeviceBuffer<float> deviceKeys(keys);
        DeviceBuffer<float> outKeys(rows * k, 0xA5);
        DeviceBuffer<int64_t> outIds(rows * k, 0xA5);
        SelectProblem p;
        p.keys = deviceKeys.data();
        p.rows = rows;
        p.cols = cols;
        p.k = k;
        p.dropNan = drop;
        p.outKeys = outKeys.data();
        p.outIds = outIds.data();
        p.device = deviceTraits();
        DeviceBuffer<uint8_t> scratch(selectWorkspaceBytes(p));
        runSelect(p, {scratch.data(), scratch.size()}, nullptr);
        const auto gotKeys = outKeys.download();
        const auto gotIds = outIds.download();
        for (int64_t row = 0; row < rows; ++row) {
            const float* own = keys.data() + row * cols;
            std::vector<int64_t> want;
            for (int64_t c = 0; c < cols; ++c) {
                if (!std::isnan(own[c])) {
                    want.push_back(c);
                }
            }
            std::stable_sort(
                    want.begin(), want.end(), [&](int64_t a, int64_t b) {
                        return own[a] < own[b];
                    });
            for (int i = 0; i < std::min<int>(k, int(want.size())); ++i) {
                ASSERT_EQ(gotIds[row * k + i], want[i])
                        << "row " << row << " place " << i << " of " << rows
                        << " x " << cols << " k=" << k;
                ASSERT_EQ(gotKeys[row * k + i], own[want[i]]);
            }
        }
    }
};

TEST_F(SelectNan, InfiniteAndNan) {
    for (auto [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{
                 {500, 8063}, {500, 3000}, {3, 200000}, {40, 70001}}) {
        for (int numbersOf : {2, 10, 30, 43, 60, 100}) {
            for (int k : {1, 6, 19, 100, 300}) {
                for (bool drop : {false, true}) {
                    expectRight(rows, cols, k, numbersOf, drop);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(SelectNan, NumbersThatLieTogetherFarFromTheRest) {
    // As distances of neighbours do, beside infinity and NaN; with one number
    // less than k, as many, and more.
    for (auto [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{
                 {1, 1517},
                 {300, 1517},
                 {300, 2000},
                 {300, 2240},
                 {40, 5000}}) {
        for (int k : {129, 257, 513, 1001, 1500}) {
            for (int64_t numbers :
                 {int64_t(k) - 1,
                  int64_t(k),
                  int64_t(k) + 1,
                  std::min<int64_t>(k + k / 8, cols),
                  cols}) {
                std::mt19937 random(uint32_t(rows + cols + k + numbers));
                std::vector<float> keys(rows * cols);
                for (int64_t row = 0; row < rows; ++row) {
                    float* own = keys.data() + row * cols;
                    for (int64_t c = 0; c < cols; ++c) {
                        const float unit = float(random() % 100000) / 100000;
                        own[c] = c < numbers        ? 16 + std::sqrt(unit)
                                : random() % 3 == 0 ? HUGE_VALF
                                                    : std::nanf("");
                    }
                    own[0] = row % 2 ? 0 : -HUGE_VALF;
                    std::shuffle(own, own + cols, random);
                }
                for (bool drop : {false, true}) {
                    SCOPED_TRACE(std::to_string(numbers) + " numbers");
                    expectRight(keys, rows, cols, k, drop);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
