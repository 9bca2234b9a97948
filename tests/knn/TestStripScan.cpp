/// Scans for the least keys of strips against exact keys.

#include "tests/common/ExpectError.h"
#include "tests/knn/TensorHarness.h"
#include "tests/knn/TensorKernelTest.h"

namespace faiss_bits::test {
namespace {

constexpr Metric kProducts[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

class StripScanTest : public TensorKernelTest {
   protected:
    /// Every key of a strip is that of some vector, and no vector has two; the
    /// least of all is there, and the i-th is no less than the i-th key.
    void check(
            Metric metric,
            int64_t numQueries,
            int64_t n,
            int d,
            uint32_t leastStrips,
            TensorValues values = TensorValues::Uniform) {
        TensorCase c;
        c.metric = metric;
        c.numQueries = numQueries;
        c.n = n;
        c.d = d;
        c.values = values;
        c.kernel = GetParam();
        SCOPED_TRACE(c.name() + " strips " + std::to_string(leastStrips));
        std::mt19937 random(unsigned(n * 31 + d));
        const TensorRows vectors(tensorRows(c, n, random), d);
        const TensorRows queries(tensorRows(c, numQueries, random), d);
        const TestStream stream;
        const DeviceScanImages images(c, vectors, queries, stream);
        TensorScanProblem problem;
        problem.metric = metric;
        problem.numQueries = numQueries;
        problem.numVectors = n;
        problem.d = d;
        problem.queries = images.queries.image;
        problem.vectors = images.vectors.image;
        problem.queryNorms = images.queries.norms();
        problem.kernel = GetParam();
        const StripPlan plan = planStrips(
                numQueries, n, d, leastStrips, GetParam(), deviceTraits());
        const DeviceBuffer<float> keys(numQueries * plan.perRow, 0xA5);
        runStripScan(problem, plan, keys.data(), deviceTraits(), stream);
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        const std::vector<float> found = keys.download();

        for (int64_t q = 0; q < numQueries && !HasFailure(); ++q) {
            const double norm = metric == Metric::L2
                    ? queries.lengths[q] * queries.lengths[q]
                    : metric == Metric::Cosine ? double(images.norms[q])
                                               : 0.0;
            // Of vectors, less the norm; those of no strip may be NaN alone.
            std::vector<std::pair<double, double>> exact; // and the error
            double most = 0;
            for (int64_t v = 0; v < n; ++v) {
                const double key = exactKey(
                        metric,
                        vectors.values.data() + v * d,
                        queries.values.data() + q * d,
                        d,
                        vectors.lengths[v] * queries.lengths[q]);
                if (std::isnan(key)) {
                    continue;
                }
                const double error = images.errorOf(
                        c, key, q, queries.lengths[q], vectors.lengths[v]);
                exact.emplace_back(key - norm, error);
                most = std::max(most, error);
            }
            if (!std::isfinite(most)) {
                continue;
            }
            std::sort(exact.begin(), exact.end());
            std::vector<float> row(
                    found.begin() + q * plan.perRow,
                    found.begin() + (q + 1) * plan.perRow);
            std::sort(row.begin(), row.end());
            // Each is of a vector of its own: taken in turn.
            size_t next = 0;
            for (size_t i = 0; i < row.size() && row[i] < INFINITY; ++i) {
                if (row[i] == -INFINITY) {
                    continue; // of a vector that is no number
                }
                EXPECT_FALSE(std::isnan(row[i]));
                while (next < exact.size() &&
                       exact[next].first < row[i] - most) {
                    ++next;
                }
                ASSERT_LT(next, exact.size()) << "query " << q;
                EXPECT_LE(exact[next].first, row[i] + most)
                        << "query " << q << " key " << i;
                ++next;
            }
            if (!exact.empty()) {
                EXPECT_LE(row[0], exact[0].first + most) << "query " << q;
            }
        }
    }
};

TEST_P(StripScanTest, EveryDimension) {
    for (Metric metric : kProducts) {
        for (int d :
             {1, 16, 17, 32, 33, 64, 65, 128, 130, 192, 256, 257, 400, 768}) {
            check(metric, 20, 700, d, 64);
        }
    }
}

TEST_P(StripScanTest, NumbersOfVectors) {
    for (int d : {20, 64, 130, 300}) {
        for (int64_t n :
             {1, 2, 7, 8, 9, 127, 128, 129, 255, 257, 511, 513, 1025, 4097}) {
            for (uint32_t strips : {1u, 100u, 2000u}) {
                check(n % 2 ? Metric::L2 : Metric::InnerProduct,
                      9,
                      n,
                      d,
                      strips);
            }
        }
    }
}

TEST_P(StripScanTest, NumbersOfQueries) {
    for (int64_t q : {1, 63, 64, 65, 127, 129, 255, 257, 1025}) {
        check(q % 2 ? Metric::InnerProduct : Metric::L2, q, 600, 48, 64);
    }
}

/// Blocks have several chunks of a tile of queries, and parts of the next.
TEST_P(StripScanTest, ChunksSideBySide) {
    // Seven chunks of 33 tiles.
    check(Metric::L2, 8200, 850, 130, 112);
    check(Metric::InnerProduct, 8200, 1700, 20, 224);
}

TEST_P(StripScanTest, Values) {
    for (TensorValues values :
         {TensorValues::Integers,
          TensorValues::Duplicates,
          TensorValues::NaNs,
          TensorValues::Denormals,
          TensorValues::Huge,
          TensorValues::Tiny,
          TensorValues::Far}) {
        for (Metric metric : kProducts) {
            for (int d : {1, 24, 100, 384}) {
                check(metric, 40, 600, d, 64, values);
            }
        }
    }
}

TEST_P(StripScanTest, PlansHaveAsManyStripsAsAsked) {
    for (int64_t n : {256, 1000, 4096, 100000, 1 << 20}) {
        for (int d : {16, 33, 128, 300}) {
            for (uint32_t least : {16u, 64u, 400u, 1000u}) {
                for (int64_t q : {17, 1000, 16384}) {
                    const StripPlan plan = planStrips(
                            q, n, d, least, GetParam(), deviceTraits());
                    EXPECT_GE(plan.unitsPerChunk, 1u);
                    if (n >= 100000) {
                        EXPECT_GE(plan.perRow, least);
                    }
                    EXPECT_LE(plan.perRow, 2 * least + 64);
                    EXPECT_EQ(plan.perRow % 16, 0u);
                }
            }
        }
    }
}

TEST_P(StripScanTest, Arguments) {
    TensorCase c;
    c.numQueries = 3;
    c.n = 300;
    c.d = 16;
    std::mt19937 random(1);
    const TensorRows vectors(tensorRows(c, c.n, random), c.d);
    const TensorRows queries(tensorRows(c, c.numQueries, random), c.d);
    const TestStream stream;
    const DeviceScanImages images(c, vectors, queries, stream);
    TensorScanProblem problem;
    problem.numQueries = c.numQueries;
    problem.numVectors = c.n;
    problem.d = c.d;
    problem.queries = images.queries.image;
    problem.vectors = images.vectors.image;
    problem.queryNorms = images.queries.norms();
    problem.kernel = GetParam();
    StripPlan plan =
            planStrips(c.numQueries, c.n, c.d, 16, GetParam(), deviceTraits());
    const DeviceBuffer<float> keys(c.numQueries * plan.perRow, 0);
    float* out = keys.data();
    const auto run = [&] {
        runStripScan(problem, plan, out, deviceTraits(), stream);
    };
    run();
    out = nullptr;
    EXPECT_TRUE(throwsNaming(run, "keys", "nullptr"));
    out = keys.data();
    plan.perRow += 16;
    EXPECT_TRUE(throwsNaming(run, "perRow", std::to_string(plan.perRow)));
    plan.unitsPerChunk = 0;
    EXPECT_TRUE(throwsNaming(run, "unitsPerChunk", "0"));
}

INSTANTIATE_TEST_SUITE_P(
        Kernels,
        StripScanTest,
        TensorKernelTest::kernels(),
        kernelName);

} // namespace
} // namespace faiss_bits::test
