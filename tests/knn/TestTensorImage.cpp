/// Images of tensor cores: layout, scales, residuals, bad arguments.

#include "kernels/knn/fused/tensor/ListedImage.h"
#include "kernels/knn/fused/tensor/QueryImage.h"
#include "tests/common/ExpectError.h"
#include "tests/knn/TensorHarness.h"

namespace faiss_bits::test {
namespace {

class TensorImageTest : public GpuTest {
   protected:
    /// Where component c of a row is in the image, in halves: written down
    /// from the layout's description.
    static size_t place(const TensorImageLayout& layout, int64_t row, int c) {
        const int slab = c / 64;
        const int64_t tile = row / 128;
        const int inTile = int(row % 128);
        const int pieces = layout.rowBytes / 16;
        const int piece = c % 64 / 8;
        const int mixed = piece ^ (inTile * layout.rowBytes / 128 % pieces);
        const size_t byte =
                size_t(tile * layout.slabs + slab) * 128 * layout.rowBytes +
                size_t(inTile) * layout.rowBytes + mixed * 16;
        return byte / 2 + c % 8;
    }

    /// Three halves that add up to the norm, and zeros.
    static void checkNormSteps(
            const TensorCase& c,
            const std::vector<float>& norms,
            const TensorImage& image,
            const TensorImageFacts& facts) {
        const auto capacity = int64_t(norms.size());
        ASSERT_EQ(facts.normScale * facts.normInverse, 1.0f);
        const auto steps = downloadFrom(
                static_cast<const uint16_t*>(image.normSteps), capacity * 16);
        for (int64_t i = 0; i < capacity; ++i) {
            const uint16_t* row =
                    steps.data() + i * 16; // its halves swapped or not
            const int first = i % 128 / 4 % 2 * 8;
            double sum = 0;
            for (int k = 0; k < 16; ++k) {
                const float part = float16Value(row[(first + k) % 16]);
                if (k < 3) {
                    sum += part;
                } else {
                    ASSERT_EQ(part, 0) << "row " << i << " place " << k;
                }
            }
            const double norm = norms[i];
            if (std::isnan(norm)) {
                ASSERT_TRUE(std::isnan(sum));
            } else if (i >= c.n || norm == -INFINITY) {
                ASSERT_EQ(sum, norm);
            } else if (norm * facts.normScale > 65504) {
                ASSERT_EQ(sum, 65504) << "row " << i;
            } else {
                ASSERT_NEAR(sum * facts.normInverse, norm, facts.normError)
                        << "row " << i;
            }
            // The scale is for vectors of what was there at the beginning.
            if (c.addedLater == 0 && i < c.n && norm < 0x1p120) {
                ASSERT_LE(norm * facts.normScale, 32768 * 1.001);
            }
        }
    }

    /// Of normalised rows and of zeros 1; of those that always pass -infinity.
    static float heldNorm(
            const TensorCase& c,
            const TensorRows& rows,
            int64_t i) {
        return c.metric == Metric::L2         ? rows.norms[i]
                : c.metric != Metric::Cosine  ? 0.0f
                : rows.inverseNorms[i] < 0.0f ? -INFINITY
                                              : 1.0f;
    }

    static void checkImage(TensorCase c, bool areQueries) {
        SCOPED_TRACE(c.name() + (areQueries ? " queries" : " vectors"));
        std::mt19937 random(c.seed);
        const TensorRows rows(tensorRows(c, c.n, random), c.d);
        const TestStream stream;
        const DeviceImage device(c, rows, areQueries, stream);
        const TensorImageLayout layout(c.n, c.d);
        const auto halves = downloadFrom(
                static_cast<const uint16_t*>(device.image.pieces),
                layout.pieceBytes() / 2);
        TensorImageFacts facts;
        std::vector<float> inverses;
        std::vector<float> residuals;
        if (areQueries) {
            inverses = downloadFrom(device.image.inverses, c.n);
            residuals = downloadFrom(device.image.residuals, c.n);
        } else {
            facts = downloadFrom(device.image.facts, 1)[0];
            ASSERT_EQ(facts.scale * facts.inverse, 1.0f);
            const auto norms =
                    downloadFrom(device.image.norms, layout.capacity);
            for (int64_t i = 0; i < layout.capacity; ++i) {
                const float want = i >= c.n ? INFINITY : heldNorm(c, rows, i);
                ASSERT_TRUE(
                        norms[i] == want ||
                        (std::isnan(norms[i]) && std::isnan(want)) ||
                        (c.metric == Metric::Cosine &&
                         std::abs(norms[i] - want) < (c.d + 8) * 0x1p-22f))
                        << "norm " << i;
            }
            checkNormSteps(c, norms, device.image, facts);
        }
        float greatest = 0;
        double longest = 0;
        std::vector<uint8_t> seen(halves.size());
        for (int64_t i = 0; i < layout.capacity; ++i) {
            const double inverse = areQueries && i < c.n ? inverses[i]
                    : areQueries                         ? 1
                                                         : facts.inverse;
            int exponent;
            ASSERT_EQ(std::frexp(inverse, &exponent), 0.5) << "row " << i;
            ASSERT_LE(std::abs(exponent - 1), 60) << "row " << i;
            double squares = 0;
            double length = 0;
            bool finite = true;
            const int width = layout.slabs * layout.rowBytes / 2;
            for (int k = 0; k < width; ++k) {
                const size_t at = place(layout, i, k);
                ASSERT_FALSE(seen[at]++);
                const float half = float16Value(halves[at]);
                if (i >= c.n || k >= c.d) {
                    ASSERT_EQ(halves[at], 0) << "row " << i << " padding " << k;
                    continue;
                }
                float x = rows.values[i * c.d + k];
                if (c.metric == Metric::Cosine) {
                    const float unfit = areQueries ? NAN : 0.0f;
                    x = rows.inverseNorms[i] < 0 ? unfit
                                                 : x * rows.inverseNorms[i];
                }
                if (!std::isfinite(x)) {
                    finite = false;
                    ASSERT_TRUE(std::isnan(x) ? std::isnan(half) : half == x);
                    continue;
                }
                ASSERT_TRUE(std::isfinite(half)) << "row " << i;
                // To nearest, or the largest that there is.
                const float scaled = float(x / inverse);
                const float want = std::abs(scaled) >= 65504.0f
                        ? std::copysign(65504.0f, scaled)
                        : float16Value(float16Bits(scaled));
                ASSERT_EQ(half, want) << "row " << i << " component " << k;
                const double off = double(x) - double(half) * inverse;
                squares += off * off;
                length += double(x) * x;
            }
            if (i >= c.n) {
                continue;
            }
            const double residual = std::sqrt(squares);
            if (areQueries) {
                EXPECT_GE(residuals[i], finite ? residual : INFINITY);
                if (finite) { // an upper bound, but no idle one
                    EXPECT_LE(
                            residuals[i],
                            residual * 1.01 + c.d * 0x1p-59 * inverse);
                }
            } else if (finite) {
                greatest = std::max(greatest, float(residual));
                longest = std::max(longest, std::sqrt(length));
            }
        }
        if (!areQueries) {
            EXPECT_GE(facts.residual, greatest);
            EXPECT_LE(
                    facts.residual,
                    greatest * 1.01 + c.d * 0x1p-59 * facts.inverse);
            EXPECT_GE(facts.greatestLength, longest);
            if (longest < 0x1p60) {
                EXPECT_LE(
                        facts.greatestLength, longest * 1.001 + c.d * 0x1p-62);
            }
        }
    }
};

TEST_F(TensorImageTest, SmallImages) {
    for (int d : {1, 7, 8, 15, 16, 17, 32, 33, 64, 65, 100, 128, 129, 300}) {
        for (DataType type :
             {DataType::Float32, DataType::Float16, DataType::BFloat16}) {
            for (bool areQueries : {false, true}) {
                TensorCase c;
                c.n = 131;
                c.d = d;
                c.type = type;
                c.values = TensorValues::Scattered;
                checkImage(c, areQueries);
                c.metric = Metric::Cosine;
                c.values = TensorValues::Uniform;
                checkImage(c, areQueries);
            }
        }
    }
}

TEST_F(TensorImageTest, Values) {
    for (TensorValues values :
         {TensorValues::Uniform,
          TensorValues::Integers,
          TensorValues::Infinities,
          TensorValues::NaNs,
          TensorValues::Denormals,
          TensorValues::Huge,
          TensorValues::Tiny,
          TensorValues::Far}) {
        for (bool areQueries : {false, true}) {
            for (Metric metric :
                 {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
                TensorCase c;
                for (int d : {24, 48, 100}) {
                    c.metric = metric;
                    c.n = 700;
                    c.d = d;
                    c.values = values;
                    checkImage(c, areQueries);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(TensorImageTest, AddedLater) {
    for (int64_t later : {1, 299, 600}) {
        TensorCase c;
        c.n = 700;
        c.d = 24;
        c.addedLater = later;
        checkImage(c, false);
    }
}

/// What searches want of queries beside their images, and norms alone, which
/// another kernel may write (QueryImage.h).
TEST_F(TensorImageTest, SmallExtrasOfQueries) {
    for (int d : {1, 7, 8, 33, 64, 100, 128, 200}) {
        TensorCase c;
        c.n = 131;
        c.d = d;
        std::mt19937 random(7);
        const TensorRows rows(tensorRows(c, c.n, random), d);
        std::vector<float> center(d);
        for (float& x : center) {
            x = float(random() % 1000) / 64;
        }
        const DeviceBuffer<float> deviceRows(rows.values);
        const DeviceBuffer<float> deviceCenter(center);
        const DeviceBuffer<uint8_t> memory(tensorImageBytes(c.n, d, true));
        DeviceBuffer<float> norms(c.n);
        DeviceBuffer<uint16_t> rounded(c.n * d);
        DeviceBuffer<CenterProduct> products(c.n);
        TensorImageProblem problem;
        problem.rows = deviceRows.data();
        problem.n = c.n;
        problem.d = d;
        problem.areQueries = true;
        problem.image = tensorImageAt(memory.data(), c.n, d, true);
        problem.outNorms = norms.data();
        for (bool subtracts : {false, true}) {
            problem.center = subtracts ? deviceCenter.data() : nullptr;
            problem.productCenter = subtracts ? nullptr : deviceCenter.data();
            problem.outProducts = subtracts ? nullptr : products.data();
            problem.outRounded = rounded.data();
            runTensorImage(problem, nullptr);
            const auto gotNorms = norms.download();
            const auto gotRounded = rounded.download();
            TensorImageProblem alone = problem;
            alone.productCenter = nullptr;
            alone.outProducts = nullptr;
            alone.outRounded = nullptr;
            EXPECT_EQ(canQueryImage(alone), d > 32 && d <= 128);
            runTensorImage(alone, nullptr);
            const auto normsAlone = norms.download();
            for (int64_t i = 0; i < c.n; ++i) {
                double squares = 0;
                double product = 0;
                double sizes = 0;
                for (int k = 0; k < d; ++k) {
                    const float whole = rows.values[i * d + k];
                    const float x = subtracts ? whole - center[k] : whole;
                    squares += double(x) * x;
                    product += double(center[k]) * whole;
                    sizes += std::abs(double(center[k]) * whole);
                    ASSERT_EQ(gotRounded[i * d + k], bfloat16Bits(x));
                }
                EXPECT_NEAR(gotNorms[i], squares, squares * (d + 1) * 0x1p-23);
                EXPECT_NEAR(
                        normsAlone[i], squares, squares * (d + 1) * 0x1p-23);
                if (!subtracts) {
                    const CenterProduct got = products.download()[i];
                    EXPECT_LE(std::abs(got.value - product), got.error);
                    EXPECT_LE(got.error, (d + 100) * 0x1p-51 * sizes);
                }
            }
        }
    }
}

TEST_F(TensorImageTest, SmallLists) {
    for (int d : {3, 16, 17, 64, 65, 200}) {
        for (int64_t n : {1, 128, 700}) {
            TensorCase c;
            c.n = 900;
            c.d = d;
            std::mt19937 random(7);
            const TensorRows rows(tensorRows(c, c.n, random), d);
            const TestStream stream;
            const DeviceImage from(c, rows, false, stream);
            std::vector<int32_t> ids(n);
            for (int32_t& id : ids) {
                id = int32_t(random() % 10 ? random() % c.n : -1);
            }
            const DeviceBuffer<int32_t> list(ids);
            const DeviceBuffer<uint8_t> memory(
                    tensorImageBytes(n, d, false), 0x7E);
            const TensorImage to = tensorImageAt(memory.data(), n, d, false);
            runListedImage(from.image, {}, d, list.data(), n, to, stream);
            const TensorImageLayout layout(n, d);
            const TensorImageLayout whole(c.n, d);
            const auto halves = [&](const TensorImage& image, size_t bytes) {
                return downloadFrom(
                        static_cast<const uint16_t*>(image.pieces), bytes / 2);
            };
            const auto steps = [&](const TensorImage& image, int64_t capacity) {
                return downloadFrom(
                        static_cast<const uint16_t*>(image.normSteps),
                        capacity * 16);
            };
            const auto fromHalves = halves(from.image, whole.pieceBytes());
            const auto toHalves = halves(to, layout.pieceBytes());
            const auto fromSteps = steps(from.image, whole.capacity);
            const auto toSteps = steps(to, layout.capacity);
            const auto fromNorms =
                    downloadFrom(from.image.norms, whole.capacity);
            const auto toNorms = downloadFrom(to.norms, layout.capacity);
            // A row that is not there is as the padding behind the last one.
            const int64_t padding = c.n;
            ASSERT_LT(padding, whole.capacity);
            const auto step = [](int64_t row, int k) {
                return row * 16 + (row % 128 / 4 % 2 * 8 + k) % 16;
            };
            for (int64_t i = 0; i < layout.capacity; ++i) {
                const int64_t id = i < n && ids[i] >= 0 ? ids[i] : padding;
                ASSERT_EQ(toNorms[i], fromNorms[id]);
                for (int k = 0; k < layout.slabs * layout.rowBytes / 2; ++k) {
                    ASSERT_EQ(
                            toHalves[place(layout, i, k)],
                            fromHalves[place(whole, id, k)])
                            << "row " << i << " component " << k;
                }
                for (int k = 0; k < 16; ++k) {
                    ASSERT_EQ(toSteps[step(i, k)], fromSteps[step(id, k)]);
                }
            }
        }
    }
}

TEST_F(TensorImageTest, Arguments) {
    TensorImageProblem problem;
    problem.d = 4;
    problem.n = 3;
    auto run = [&] { runTensorImage(problem, nullptr); };
    EXPECT_TRUE(throwsNaming(run, "rows", "nullptr"));
    problem.n = -1;
    EXPECT_TRUE(throwsNaming(run, "n", "-1"));
    problem.n = 0;
    problem.d = 0;
    EXPECT_TRUE(throwsNaming(run, "d", "0"));
    problem.d = 4;
    problem.first = -5;
    EXPECT_TRUE(throwsNaming(run, "first", "-5"));
    problem.first = 0;
    EXPECT_TRUE(throwsNaming(run, "pieces", "nullptr"));
    const DeviceBuffer<uint8_t> memory(tensorImageBytes(3, 4, false));
    problem.image = tensorImageAt(memory.data(), 3, 4, false);
    EXPECT_TRUE(throwsNaming(run, "greatest", "nullptr"));
    problem.areQueries = true;
    EXPECT_TRUE(throwsNaming(run, "inverses", "nullptr"));
    EXPECT_TRUE(
            throwsNaming([] { tensorImageBytes(-2, 4, false); }, "rows", "-2"));
    EXPECT_TRUE(throwsNaming([] { tensorImageBytes(2, 0, false); }, "d", "0"));
    EXPECT_TRUE(throwsNaming(
            [] { tensorImageAt(nullptr, 2, 3, false); }, "memory", "nullptr"));
}

} // namespace
} // namespace faiss_bits::test
