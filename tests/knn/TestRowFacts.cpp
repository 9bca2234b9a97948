/// What the metrics want to know of the rows, and the maxima for the bounds.

#include <cmath>
#include <numeric>

#include "kernels/knn/RowFacts.h"
#include "tests/knn/MetricHarness.h"

namespace faiss_bits::test {
namespace {

class RowFactsTest : public GpuTest {
   protected:
    static std::vector<float> facts(
            RowFacts kind,
            const std::vector<float>& rows,
            int d,
            DataType type = DataType::Float32,
            bool rowMajor = true) {
        const int64_t n = int64_t(rows.size()) / d;
        const DeviceBuffer<uint8_t> device(
                packAs(type, rowMajor ? rows : transposed(rows, n, d)));
        const DeviceBuffer<float> out(n, 0xA5);
        runRowFacts(
                kind, device.data(), type, rowMajor, n, d, out.data(), nullptr);
        return out.download();
    }

    static RowMaxima maxima(
            const std::vector<float>& rows,
            int d,
            bool rowMajor = true) {
        const int64_t n = int64_t(rows.size()) / d;
        const DeviceBuffer<uint8_t> device(packAs(
                DataType::Float32, rowMajor ? rows : transposed(rows, n, d)));
        const DeviceBuffer<RowMaxima> out(1, 0xA5);
        runRowMaxima(
                device.data(),
                DataType::Float32,
                rowMajor,
                n,
                d,
                out.data(),
                nullptr);
        return out.download()[0];
    }
};

TEST_F(RowFactsTest, SmallSums) {
    for (DataType type : kDataTypes) {
        for (bool rowMajor : {true, false}) {
            for (int d : {1, 3, 4, 31, 32, 33, 100}) {
                const int64_t n = 135;
                std::vector<float> rows(n * d);
                for (size_t i = 0; i < rows.size(); ++i) {
                    rows[i] = float(i * 7 % 11);
                }
                rows[5 * d] = -1;
                rows[6 * d + d - 1] = NAN;
                rows[7 * d + d / 2] = INFINITY;
                const auto out = facts(RowFacts::Sum, rows, d, type, rowMajor);
                for (int64_t i = 0; i < n; ++i) {
                    const float want = i >= 5 && i <= 7
                            ? -1.f
                            : std::accumulate(
                                      rows.begin() + i * d,
                                      rows.begin() + (i + 1) * d,
                                      0.f);
                    ASSERT_EQ(out[i], want) << "row " << i << " d=" << d;
                }
            }
        }
    }
}

TEST_F(RowFactsTest, SmallRanges) {
    const std::vector<float> rows = {
            0.f,
            -0.f,
            1.f,
            -1.f,
            0x1p-40f,
            0x1.8p-41f,
            0x1p60f,
            0x1.8p60f,
            -0x1p-40f,
            0x1p-100f,
            0x1p-101f,
            0x1p100f,
            0x1p101f,
            NAN,
            INFINITY,
            -INFINITY,
            0x1p-149f};
    const std::vector<float> canberra = {
            0, 0, 0, 0, 0, -1, 0, -1, 0, -1, -1, -1, -1, -1, -1, -1, -1};
    const std::vector<float> jensenShannon = {
            0, 0, 0, -1, 0, 0, 0, 0, -1, 0, -1, 0, -1, -1, -1, -1, -1};
    EXPECT_EQ(facts(RowFacts::CanberraRange, rows, 1), canberra);
    EXPECT_EQ(facts(RowFacts::JensenShannonRange, rows, 1), jensenShannon);
}

TEST_F(RowFactsTest, SmallInverseNorms) {
    const std::vector<float> rows = {
            3,
            4, //
            0,
            0, //
            -0.f,
            0, //
            0x1p-100f,
            0, // its square is 0
            0x1p-30f,
            0x1p-140f, //
            0x1p70f,
            0, //
            NAN,
            1, //
            INFINITY,
            0};
    const std::vector<float> want = {0.2f, 0, 0, -1, 0x1p30f, -1, -1, -1};
    EXPECT_EQ(facts(RowFacts::InverseNorm, rows, 2), want);
}

TEST_F(RowFactsTest, SmallMaxima) {
    for (bool rowMajor : {true, false}) {
        for (int d : {1, 3, 32, 33, 100}) {
            const int64_t n = 3000;
            std::vector<float> rows(n * d);
            for (size_t i = 0; i < rows.size(); ++i) {
                rows[i] = float(int(i * 7 % 11)) - 5;
            }
            float sum = 0;
            float squares = 0;
            for (int64_t i = 0; i < n; ++i) {
                float rowSum = 0;
                float rowSquares = 0;
                for (int c = 0; c < d; ++c) {
                    const float x = rows[i * d + c];
                    rowSum += std::abs(x);
                    rowSquares += x * x;
                }
                sum = std::max(sum, rowSum);
                squares = std::max(squares, rowSquares);
            }
            RowMaxima out = maxima(rows, d, rowMajor);
            EXPECT_EQ(out.sum, sum) << "d=" << d;
            EXPECT_EQ(out.squares, squares) << "d=" << d;
            // NaN must not hide what is there.
            rows[17 * d] = NAN;
            out = maxima(rows, d, rowMajor);
            EXPECT_EQ(out.sum, INFINITY);
            EXPECT_EQ(out.squares, INFINITY);
        }
    }
    const RowMaxima none = maxima({}, 3);
    EXPECT_EQ(none.sum, 0);
    EXPECT_EQ(none.squares, 0);
}

} // namespace
} // namespace faiss_bits::test
