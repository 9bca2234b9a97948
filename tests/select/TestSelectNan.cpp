/// Rows that are NaN but for some numbers, of which many are infinite: the
/// limit of a sample then lies between infinity and NaN, where no key is.

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/select/Select.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

class SelectNan : public GpuTest {
   protected:
    /// Every row's k least, equal keys by their columns, NaN last.
    void expectRight(
            int64_t rows,
            int64_t cols,
            int k,
            int numbersOf,
            bool drop) {
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
                        << " x " << cols << " k=" << k << " one number in "
                        << numbersOf;
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

} // namespace
} // namespace faiss_bits::test
