/// The last of every row of a result.

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/many/RowLimits.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/ExpectError.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

class RowLimits : public GpuTest {};

TEST_F(RowLimits, SmallRows) {
    for (int64_t rows : {1, 255, 256, 257, 3000}) {
        for (int64_t k : {1, 2, 33}) {
            for (bool largest : {false, true}) {
                std::vector<float> distances(rows * k);
                std::vector<int64_t> ids(rows * k);
                std::vector<float> want;
                for (int64_t i = 0; i < rows * k; ++i) {
                    distances[i] = float(i % 1000) - 300;
                    ids[i] = i % 7 == 6 ? -1 : i;
                }
                for (int64_t row = 0; row < rows; ++row) {
                    const int64_t last = row * k + k - 1;
                    want.push_back(
                            last % 7 != 6     ? distances[last]
                                    : largest ? -HUGE_VALF
                                              : HUGE_VALF);
                }
                const DeviceBuffer<float> d(distances);
                const DeviceBuffer<int64_t> i(ids);
                const DeviceBuffer<float> limits(rows, 0xA5);
                runRowLimits(
                        d.data(),
                        i.data(),
                        rows,
                        k,
                        largest,
                        limits.data(),
                        nullptr);
                EXPECT_EQ(limits.download(), want) << rows << " x " << k;
            }
        }
    }
}

TEST(RowLimitsArguments, AreChecked) {
    auto* x = reinterpret_cast<float*>(256);
    auto* ids = reinterpret_cast<int64_t*>(256);
    EXPECT_TRUE(throwsNaming(
            [&] { runRowLimits(nullptr, ids, 1, 1, false, x, nullptr); },
            "distances"));
    EXPECT_TRUE(throwsNaming(
            [&] { runRowLimits(x, nullptr, 1, 1, false, x, nullptr); }, "ids"));
    EXPECT_TRUE(throwsNaming(
            [&] { runRowLimits(x, ids, 1, 1, false, nullptr, nullptr); },
            "limits"));
    EXPECT_TRUE(throwsNaming(
            [&] { runRowLimits(x, ids, -1, 1, false, x, nullptr); }, "rows"));
    EXPECT_TRUE(throwsNaming(
            [&] { runRowLimits(x, ids, 1, 0, false, x, nullptr); }, "k"));
    runRowLimits(nullptr, nullptr, 0, 1, false, nullptr, nullptr);
}

} // namespace
} // namespace faiss_bits::test
