/// Images of normalised rows less a center, as cosines have them: what is held,
/// norms, zeros and rows that always pass; and what a sample holds.

#include "kernels/knn/fused/SampleKernels.h"
#include "tests/knn/TensorHarness.h"
#include "tests/knn/TensorKernelTest.h"

namespace faiss_bits::test {
namespace {

TensorCase caseOf(int d, TensorValues values) {
    TensorCase c;
    c.metric = Metric::Cosine;
    c.n = 300;
    c.numQueries = 300;
    c.d = d;
    c.values = values;
    return c;
}

class CosineScanTest : public TensorKernelTest {};

class CosineImageTest : public GpuTest {
   protected:
    /// Every fifth row is zeros.
    static TensorRows rowsOf(const TensorCase& c, unsigned seed) {
        std::mt19937 random(seed);
        std::vector<float> values = tensorRows(c, c.n, random);
        for (int64_t i = 0; i < c.n; i += 5) {
            std::fill_n(values.begin() + i * c.d, c.d, 0.0f);
        }
        return TensorRows(std::move(values), c.d);
    }
};

/// Norms are those of normalised rows less the center, and 1 more of zeros.
TEST_F(CosineImageTest, SmallNorms) {
    for (TensorValues values :
         {TensorValues::Uniform,
          TensorValues::Far,
          TensorValues::Denormals,
          TensorValues::NaNs}) {
        for (int d : {1, 17, 40, 64, 200}) {
            const TensorCase c = caseOf(d, values);
            SCOPED_TRACE(c.name());
            const TensorRows rows = rowsOf(c, 1);
            const std::vector<float> center = cosineCenter(rows, d);
            const TestStream stream;
            const DeviceScanImages images(c, rows, rows, stream);
            const auto norms = downloadFrom(images.vectors.image.norms, c.n);
            const double scale = images.facts.scale;
            for (int64_t i = 0; i < c.n; ++i) {
                const float inverse = rows.inverseNorms[i];
                if (inverse < 0) {
                    EXPECT_EQ(norms[i], -INFINITY);
                    EXPECT_EQ(images.norms[i], INFINITY);
                    continue;
                }
                double squares = inverse == 0 ? 1 : 0;
                double length = 0;
                for (int k = 0; k < d; ++k) {
                    const double x = double(rows.values[i * d + k]) * inverse;
                    const double held = x - center[k];
                    squares += held * held;
                    length += std::abs(held) * 2 * 0x1p-23 + 0x1p-46;
                }
                const double error = squares * (d + 8) * 0x1p-23 + length;
                EXPECT_NEAR(norms[i], squares, error) << "row " << i;
                EXPECT_NEAR(images.norms[i], squares, error) << "row " << i;
                EXPECT_LT(squares * scale * scale, 65504.0 * 65504);
            }
            EXPECT_LT(images.facts.residual, 0x1p-10);
        }
    }
}

/// The bound decides a good part of the pairs of a scan (0.23 to 0.31 on an
/// H200) where all lie far from the origin: without a center it would be none.
TEST_P(CosineScanTest, FarPairsAreDecided) {
    for (int d : {17, 40, 64}) {
        TensorCase c = caseOf(d, TensorValues::Far);
        c.kernel = GetParam();
        c.n = 1000;
        const TensorChecked checked = checkTensorCase(c);
        EXPECT_GT(checked.decided, checked.pairs / 5) << c.name();
    }
}

INSTANTIATE_TEST_SUITE_P(
        Kernels,
        CosineScanTest,
        TensorKernelTest::kernels(),
        kernelName);

TEST_F(CosineImageTest, SmallSamples) {
    for (int d : {1, 20, 33, 300}) {
        const TensorCase c = caseOf(d, TensorValues::Scattered);
        const TensorRows rows = rowsOf(c, 3);
        std::vector<float> values = rows.values;
        values[d] = NAN; // of the second row
        values[2 * d] = INFINITY;
        const std::vector<float> center(d, 0.125f);
        const DeviceBuffer<float> deviceCenter(center);
        DeviceBuffer<float> normalized(values);
        DeviceBuffer<uint16_t> rounded(c.n * d);
        DeviceBuffer<float> norms(c.n);
        runNormalize(normalized.data(), c.n, d, nullptr);
        runNormalizedSample(
                normalized.data(),
                c.n,
                d,
                deviceCenter.data(),
                rounded.data(),
                norms.data(),
                nullptr);
        const auto got = normalized.download();
        const auto gotRounded = rounded.download();
        const auto gotNorms = norms.download();
        for (int64_t i = 0; i < c.n; ++i) {
            const bool isZero = i % 5 == 0 || i == 1 || i == 2;
            double squares = isZero ? 1 : 0;
            for (int k = 0; k < d; ++k) {
                const float x = got[i * d + k];
                const double want =
                        isZero ? 0.0 : rows.values[i * d + k] / rows.lengths[i];
                ASSERT_NEAR(x, want, std::abs(want) * 0x1p-23);
                const uint16_t bits = bfloat16Bits(x - center[k]);
                ASSERT_EQ(gotRounded[i * d + k], bits);
                squares += double(bfloat16Value(bits)) * bfloat16Value(bits);
            }
            EXPECT_NEAR(gotNorms[i], squares, squares * (d + 8) * 0x1p-23);
        }
    }
}

} // namespace
} // namespace faiss_bits::test
