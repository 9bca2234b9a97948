/// Strips of the nearest vectors against exact keys.

#include "kernels/knn/fused/tensor/NearestTiles.h"
#include "tests/knn/TensorHarness.h"
#include "tests/knn/TensorKernelTest.h"

namespace faiss_bits::test {
namespace {

constexpr Metric kProducts[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

class NearestScanTest : public TensorKernelTest {
   protected:
    /// Kept vectors have their values, and no other vector has more than the
    /// rest of its query says. Returns the shares of rests that say something.
    double check(
            Metric metric,
            int64_t numQueries,
            int64_t n,
            int d,
            TensorValues values = TensorValues::Uniform) {
        TensorCase c;
        c.metric = metric;
        c.numQueries = numQueries;
        c.n = n;
        c.d = d;
        c.values = values;
        c.kernel = GetParam();
        SCOPED_TRACE(c.name());
        std::mt19937 random(unsigned(n * 31 + d));
        const TensorRows vectors(tensorRows(c, n, random), d);
        const TensorRows queries(tensorRows(c, numQueries, random), d);
        const TestStream stream;
        const DeviceScanImages images(c, vectors, queries, stream);
        const DeviceImage& vectorImage = images.vectors;
        const DeviceImage& queryImage = images.queries;

        TensorScanProblem problem;
        problem.metric = metric;
        problem.numQueries = numQueries;
        problem.numVectors = n;
        problem.d = d;
        problem.queries = queryImage.image;
        problem.vectors = vectorImage.image;
        problem.queryNorms = queryImage.norms();
        problem.kernel = GetParam();
        const uint32_t perRow =
                nearestStripsOf(numQueries, n, d, GetParam(), deviceTraits());
        const DeviceBuffer<NearestStrip> strips(numQueries * perRow, 0xA5);
        const DeviceBuffer<float> rests(numQueries * perRow, 0xA5);
        runNearestScan(
                problem,
                {strips.data(), rests.data(), perRow},
                deviceTraits(),
                stream);
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        const auto strip = strips.download();
        const auto rest = rests.download();

        int64_t known = 0;
        for (int64_t q = 0; q < numQueries; ++q) {
            const auto keyOf = [&](int64_t v) {
                return exactKey(
                        metric,
                        vectors.values.data() + v * d,
                        queries.values.data() + q * d,
                        d,
                        vectors.lengths[v] * queries.lengths[q]);
            };
            const double norm = metric == Metric::L2
                    ? queries.lengths[q] * queries.lengths[q]
                    : metric == Metric::Cosine ? double(images.norms[q])
                                               : 0.0;
            const auto valueOf = [&](int64_t v) { return norm - keyOf(v); };
            const auto errorOf = [&](int64_t v) {
                return images.errorOf(
                        c, keyOf(v), q, queries.lengths[q], vectors.lengths[v]);
            };
            std::vector<uint8_t> kept(n);
            double most = -INFINITY;
            for (uint32_t i = 0; i < perRow; ++i) {
                const NearestStrip& one = strip[q * perRow + i];
                most = std::fmax(most, double(rest[q * perRow + i]));
                for (int j = 0; j < 2; ++j) {
                    if (!(one.values[j] > -INFINITY)) {
                        continue;
                    }
                    // The largest of the four has this value.
                    double greatest = -INFINITY;
                    double error = 0;
                    for (uint32_t m = 0; m < 4; ++m) {
                        const uint32_t v = nearestColumn(one.columns[j], m);
                        EXPECT_TRUE(m > 0 || v < n + 512);
                        if (v >= n) {
                            continue;
                        }
                        EXPECT_FALSE(kept[v]) << "twice: " << v;
                        kept[v] = 1;
                        greatest = std::fmax(greatest, valueOf(v));
                        error = std::fmax(error, errorOf(v));
                    }
                    if (std::isfinite(greatest)) {
                        EXPECT_NEAR(
                                one.values[j],
                                greatest,
                                error +
                                        kNearestValueError *
                                                std::abs(double(one.values[j])))
                                << "query " << q << " four " << one.columns[j];
                    }
                }
            }
            known += std::isfinite(most);
            for (int64_t v = 0; v < n; ++v) {
                if (!kept[v] && std::isfinite(valueOf(v))) {
                    EXPECT_LE(
                            valueOf(v) - errorOf(v),
                            most + kNearestValueError * std::abs(most))
                            << "query " << q << " vector " << v;
                }
            }
            if (HasFailure()) {
                return 0;
            }
        }
        return double(known) / double(numQueries);
    }
};

TEST_P(NearestScanTest, SmallOfEveryDimension) {
    for (Metric metric : kProducts) {
        for (int d : {1, 16, 17, 33, 64, 65, 130, 256, 257, 400}) {
            EXPECT_EQ(check(metric, 20, 300, d), 1);
        }
    }
}

TEST_P(NearestScanTest, BothSidesOfEveryTile) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int64_t n : {1, 2, 31, 127, 128, 129, 511, 512, 513, 4097}) {
            for (int64_t q : {1, 63, 129, 257}) {
                for (int d : {8, 30, 64}) {
                    check(metric, q, n, d);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_P(NearestScanTest, SmallOfEveryKind) {
    for (Metric metric : kProducts) {
        for (TensorValues values :
             {TensorValues::Integers,
              TensorValues::Duplicates,
              TensorValues::Scattered,
              TensorValues::Denormals,
              TensorValues::Tiny,
              TensorValues::Far}) {
            check(metric, 40, 700, 20, values);
        }
    }
    for (TensorValues values : {TensorValues::NaNs, TensorValues::Infinities}) {
        for (int d : {1, 20, 100}) {
            check(Metric::L2, 40, 700, d, values);
        }
    }
    EXPECT_EQ(check(Metric::InnerProduct, 40, 700, 20, TensorValues::NaNs), 0);
    EXPECT_EQ(
            check(Metric::InnerProduct, 40, 700, 20, TensorValues::Infinities),
            0);
}

/// Strips of one tile, and of chunks: of vectors that are not as long.
TEST_P(NearestScanTest, BothSidesOfTileStrips) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int64_t n : {63, 255, 256, 257, 2047, 2048, 2049}) {
            for (int d : {256, 257, 321}) {
                for (int64_t q : {1, 65, 129}) {
                    EXPECT_EQ(
                            nearestTileOf(q, n, d, GetParam(), deviceTraits()),
                            GetParam() == TensorScanKernel::Wgmma && d > 256
                                    ? 256u
                                    : 0u);
                    check(metric, q, n, d);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
        check(metric, 3, 20000, 256);
        check(metric, 3, 20000, 257);
    }
}

TEST_P(NearestScanTest, SmallOfTileStrips) {
    for (Metric metric : kProducts) {
        for (int d : {193, 256, 300}) {
            check(metric, 40, 700, d, TensorValues::Duplicates);
            check(metric, 40, 700, d, TensorValues::Far);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        All,
        NearestScanTest,
        TensorKernelTest::kernels(),
        kernelName);

} // namespace
} // namespace faiss_bits::test
