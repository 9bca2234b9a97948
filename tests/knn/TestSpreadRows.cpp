/// Images whose rows are in another order than the vectors: each vector has
/// one row, which holds what its row of an image in order holds; and scans of
/// such images name vectors.

#include "kernels/knn/fused/tensor/ListedImage.h"
#include "kernels/knn/fused/tensor/VectorImage.h"
#include "tests/common/ExpectError.h"
#include "tests/knn/TensorHarness.h"
#include "tests/knn/TensorKernelTest.h"

namespace faiss_bits::test {
namespace {

TEST(SpreadRows, AreOfOneVectorEach) {
    for (idx_t n : {0, 1, 127, 128, 129, 255, 256, 1000, 40000, 131072}) {
        const SpreadRows rows = spreadRowsOf(n);
        std::vector<bool> seen(n);
        for (uint32_t row = 0; row < uint32_t(n); ++row) {
            const uint32_t vector = rows.vectorOf(row);
            ASSERT_LT(vector, uint32_t(n));
            EXPECT_FALSE(seen[vector]);
            seen[vector] = true;
            EXPECT_EQ(rows.rowOf(vector), row);
        }
        // Padding stays where it is.
        for (idx_t row = n; row < n + 600; ++row) {
            EXPECT_EQ(rows.vectorOf(uint32_t(row)), uint32_t(row));
        }
    }
    const SpreadRows most = spreadRowsOf((idx_t(1) << 32) - 1025);
    for (uint32_t row : {0u, 1u, 0x7fffffffu, 0xfffffb00u, 0xfffffbfeu}) {
        EXPECT_EQ(most.rowOf(most.vectorOf(row)), row);
    }
}

/// As many neighbours as there are tiles lie in tiles of their own, and in many
/// places of them.
TEST(SpreadRows, NeighboursAreFarApart) {
    const SpreadRows rows = spreadRowsOf(1 << 20);
    for (uint32_t first : {0u, 77777u, 1000000u}) {
        std::vector<bool> tiles(rows.tiles);
        std::vector<int> places(SpreadRows::kTileRows);
        const uint32_t count = 4096;
        for (uint32_t i = 0; i < count; ++i) {
            const uint32_t row = rows.rowOf(first + i);
            EXPECT_FALSE(tiles[row / SpreadRows::kTileRows]);
            tiles[row / SpreadRows::kTileRows] = true;
            ++places[row % SpreadRows::kTileRows];
        }
        for (int ofPlace : places) {
            EXPECT_GE(ofPlace, 8);
            EXPECT_LE(ofPlace, 80);
        }
    }
}

/// An image of vectors in float32 that lie on the device.
struct SpreadCase {
    SpreadCase(int64_t n, int d, const std::vector<float>& values)
            : vectors(values),
              greatest(std::vector<float>{1}),
              memory(tensorImageBytes(n, d, false), 0x7E) {
        problem.rows = vectors.data();
        problem.n = n;
        problem.d = d;
        problem.greatest = greatest.data();
        problem.image = tensorImageAt(memory.data(), n, d, false);
    }

    DeviceBuffer<float> vectors;
    DeviceBuffer<float> greatest;
    DeviceBuffer<uint8_t> memory;
    TensorImageProblem problem;
};

class SpreadImageTest : public GpuTest {};

TEST_F(SpreadImageTest, SmallHoldsTheSameRows) {
    for (int d : {3, 16, 17, 64, 130}) {
        for (int64_t n : {1, 127, 128, 300, 1000}) {
            SCOPED_TRACE(std::to_string(n) + " x " + std::to_string(d));
            std::vector<float> values(n * d);
            std::mt19937 random(5);
            for (float& value : values) {
                value = float(random() % 1000) / 500 - 1;
            }
            SpreadCase spread(n, d, values);
            const SpreadRows rows = spreadRowsOf(n);
            // In order, of the vectors in the other order.
            std::vector<float> moved(values.size());
            std::vector<int32_t> ids(n);
            for (int64_t row = 0; row < n; ++row) {
                ids[row] = int32_t(rows.vectorOf(uint32_t(row)));
                std::copy_n(
                        values.begin() + int64_t(ids[row]) * d,
                        d,
                        moved.begin() + row * d);
            }
            SpreadCase plain(n, d, moved);
            const DeviceBuffer<float> zeros(std::vector<float>(d, 0.0f));
            spread.problem.center = plain.problem.center = zeros.data();
            const TestStream stream;
            runVectorImage(spread.problem, {rows, false}, stream);
            runTensorImage(plain.problem, stream);
            const TensorImageLayout layout(n, d);
            const auto bytes = [&](const TensorImage& image) {
                return downloadFrom(
                        static_cast<const uint8_t*>(image.pieces),
                        layout.pieceBytes());
            };
            const auto steps = [&](const TensorImage& image) {
                return downloadFrom(
                        static_cast<const uint16_t*>(image.normSteps),
                        layout.capacity * 16);
            };
            const auto norms = [&](const TensorImage& image) {
                return downloadFrom(image.norms, layout.capacity);
            };
            EXPECT_EQ(bytes(spread.problem.image), bytes(plain.problem.image));
            EXPECT_EQ(steps(spread.problem.image), steps(plain.problem.image));
            EXPECT_EQ(norms(spread.problem.image), norms(plain.problem.image));
            // What is copied together is found by the vectors' numbers.
            const DeviceBuffer<int32_t> list(ids);
            SpreadCase copy(n, d, values);
            runListedImage(
                    spread.problem.image,
                    rows,
                    d,
                    list.data(),
                    n,
                    copy.problem.image,
                    stream);
            EXPECT_EQ(bytes(copy.problem.image), bytes(plain.problem.image));
            EXPECT_EQ(steps(copy.problem.image), steps(plain.problem.image));
        }
    }
}

TEST_F(SpreadImageTest, Arguments) {
    SpreadCase c(200, 4, std::vector<float>(800, 1.0f));
    const auto run = [&](SpreadRows rows) {
        return [&, rows] { runVectorImage(c.problem, {rows, false}, nullptr); };
    };
    EXPECT_TRUE(throwsNaming(run({2}), "rows.tiles", "2"));
    c.problem.first = 128;
    EXPECT_TRUE(throwsNaming(run({1}), "first", "128"));
    c.problem.first = 0;
    c.problem.areQueries = true;
    EXPECT_TRUE(throwsNaming(run({1}), "areQueries", "1"));
    c.problem.areQueries = false;
    const DeviceBuffer<float> inverse(std::vector<float>(200, 1.0f));
    c.problem.inverseNorms = inverse.data();
    EXPECT_THROW(runVectorImage(c.problem, {{}, true}, nullptr), Error);
}

class SpreadScanTest : public TensorKernelTest {};

/// By inner product with one component a vector each, so that what passes is
/// known by its number: lists, bits, and what a filter leaves.
TEST_P(SpreadScanTest, SmallNamesVectors) {
    for (int d : {16, 64, 130, 300}) {
        for (int64_t n : {100, 128, 700, 3000}) {
            std::vector<float> values(n * d, 0.0f);
            for (int64_t v = 0; v < n; ++v) {
                values[v * d] = float(v % 7);
                values[v * d + 1] = float(v % 11);
            }
            const int64_t q = 18;
            std::vector<float> queries(q * d, 0.0f);
            for (int64_t i = 0; i < q; ++i) {
                queries[i * d + i % 2] = 1;
            }
            const TestStream stream;
            SpreadCase c(n, d, values);
            const SpreadRows rows = spreadRowsOf(n);
            runVectorImage(c.problem, {rows, false}, stream);
            const DeviceBuffer<float> deviceQueries(queries);
            const DeviceBuffer<uint8_t> queryMemory(
                    tensorImageBytes(q, d, true), 0x7E);
            TensorImageProblem ofQueries;
            ofQueries.rows = deviceQueries.data();
            ofQueries.n = q;
            ofQueries.d = d;
            ofQueries.areQueries = true;
            ofQueries.image = tensorImageAt(
                    const_cast<uint8_t*>(queryMemory.data()), q, d, true);
            runTensorImage(ofQueries, stream);
            std::vector<uint32_t> allowedBits((n + 31) / 32);
            for (int64_t v = 0; v < n; v += 3) {
                allowedBits[v / 32] |= 1u << v % 32;
            }
            const DeviceBuffer<uint32_t> allowed(allowedBits);
            const DeviceBuffer<float> limits(std::vector<float>(q, -5.0f));
            for (bool filtered : {false, true}) {
                DeviceBuffer<uint32_t> counts(q, 0);
                DeviceBuffer<uint32_t> columns(q * n, 0xA5);
                const uint64_t words = uint64_t(n + 31) / 32;
                DeviceBuffer<uint32_t> bits(q * words, 0);
                TensorScanProblem problem;
                problem.metric = Metric::InnerProduct;
                problem.numQueries = q;
                problem.numVectors = n;
                problem.d = d;
                problem.queries = ofQueries.image;
                problem.vectors = c.problem.image;
                problem.rows = rows;
                problem.kernel = GetParam();
                problem.allowedBits = filtered ? allowed.data() : nullptr;
                problem.passed.limits = limits.data();
                problem.passed.counts = counts.data();
                problem.passed.columns = columns.data();
                problem.passed.capacity = uint32_t(n);
                runTensorScan(problem, deviceTraits(), stream);
                problem.passed.bits = bits.data();
                problem.passed.words = words;
                runTensorScan(problem, deviceTraits(), stream);
                BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
                const auto gotCounts = counts.download();
                const auto gotColumns = columns.download();
                const auto gotBits = bits.download();
                for (int64_t i = 0; i < q; ++i) {
                    std::vector<uint32_t> expected;
                    for (int64_t v = 0; v < n; ++v) {
                        if (values[v * d + i % 2] >= 5 &&
                            (!filtered || v % 3 == 0)) {
                            expected.push_back(uint32_t(v));
                        }
                    }
                    ASSERT_EQ(gotCounts[i], expected.size());
                    std::vector<uint32_t> got(
                            gotColumns.begin() + i * n,
                            gotColumns.begin() + i * n + gotCounts[i]);
                    std::sort(got.begin(), got.end());
                    EXPECT_EQ(got, expected);
                    got.clear();
                    for (uint64_t w = 0; w < words; ++w) {
                        for (int b = 0; b < 32; ++b) {
                            if (gotBits[i * words + w] >> b & 1) {
                                got.push_back(
                                        rows.vectorOf(uint32_t(w * 32 + b)));
                            }
                        }
                    }
                    std::sort(got.begin(), got.end());
                    EXPECT_EQ(got, expected);
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        Kernels,
        SpreadScanTest,
        TensorKernelTest::kernels(),
        kernelName);

} // namespace
} // namespace faiss_bits::test
