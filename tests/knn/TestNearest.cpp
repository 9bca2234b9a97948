/// Searches for the one nearest of few vectors: strips against exact keys, and
/// results against canonical distances.

#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/fused/tensor/NearestTiles.h"
#include "tests/common/ExpectError.h"
#include "tests/knn/NearestHarness.h"
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

/// Items of few queries are as many as multiprocessors, where there are so many
/// vectors; of more, strips are few.
TEST(NearestChunks, FewQueriesFillTheGpu) {
    const DeviceTraits hopper;
    if (!hasTensorScan(TensorScanKernel::Wgmma, hopper)) {
        GTEST_SKIP() << "built for other GPUs";
    }
    const auto stripsOf = [&](int64_t queries, int64_t vectors) {
        return nearestStripsOf(
                queries, vectors, 128, TensorScanKernel::Wgmma, hopper);
    };
    constexpr uint32_t kOfChunk = 4;
    EXPECT_EQ(stripsOf(17, 128 * 132), 132 * kOfChunk);
    EXPECT_EQ(stripsOf(256, 128 * 132), 132 * kOfChunk);
    EXPECT_EQ(stripsOf(257, 128 * 132), 66 * kOfChunk);
    EXPECT_EQ(stripsOf(17, 128 * 16), 16 * kOfChunk);
    EXPECT_LE(stripsOf(8 * 256 + 1, 65536), 16 * kOfChunk);
    EXPECT_EQ(stripsOf(1 << 17, 65536), kOfChunk);
}

/// Strips of tiles take 80 MiB at most.
TEST(NearestTiles, BothSidesOfTheirMemory) {
    const DeviceTraits hopper;
    if (!hasTensorScan(TensorScanKernel::Wgmma, hopper)) {
        GTEST_SKIP() << "built for other GPUs";
    }
    struct Case {
        int64_t queries;
        int64_t vectors;
        bool has;
    };
    for (const Case& c : std::initializer_list<Case>{
                 {1 << 17, 2048, true},
                 {1 << 17, 2049, false},
                 {(1 << 17) + 1, 2048, false},
                 {16384, 16384, true},
                 {16385, 16384, false},
                 {16384, 16385, false},
                 {4096, 65536, true},
                 {4097, 65536, false},
                 {1, 65537, false}}) {
        for (int d : {256, 257}) {
            const uint32_t tile = nearestTileOf(
                    c.queries, c.vectors, d, TensorScanKernel::Wgmma, hopper);
            EXPECT_EQ(tile, c.has && d == 257 ? 256u : 0u)
                    << c.queries << " queries of " << c.vectors << " vectors";
            const uint32_t strips = nearestStripsOf(
                    c.queries, c.vectors, d, TensorScanKernel::Wgmma, hopper);
            if (tile > 0) {
                EXPECT_EQ(strips, uint32_t((c.vectors + 255) / 256 * 4));
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
        All,
        NearestScanTest,
        TensorKernelTest::kernels(),
        kernelName);

TEST_F(NearestKnn, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kProducts) {
            for (int d : {20, 32, 300}) {
                CertifiedCase c = of(metric, 2005, d);
                c.keptImage = d == 32;
                c.imageInOrder = metric == Metric::L2;
                EXPECT_TRUE(planOf(c).nearest) << c.describe();
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(NearestKnn, BothSidesOfEveryEdge) {
    for (int64_t n :
         {63, 64, 65, 127, 128, 129, 1000, 4096, 16385, 65535, 65536, 65537}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            for (int d : {12, 130}) {
                CertifiedCase c = of(metric, n, d);
                c.idType = d == 12 ? IdType::Int32 : IdType::Int64;
                EXPECT_EQ(planOf(c).nearest.has_value(), n >= 64 && n <= 65536);
                expectCanonical(c, n % 2 ? Hard::Bytes : Hard::Clusters);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(NearestKnn, SixteenBits) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Mixed, Hard::Infinite}) {
        for (DataType type : {DataType::Float16, DataType::BFloat16}) {
            for (bool exactQueries : {false, true}) {
                CertifiedCase c = of(Metric::L2, 1000, 140);
                c.dataType = type;
                c.exactQueries = exactQueries;
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// Vectors that float16 makes infinite do not hide those beside them.
TEST_F(NearestKnn, InfinitiesHideNoOther) {
    for (Hard kind : {Hard::Infinite, Hard::Mixed}) {
        for (int d : {3, 140}) {
            CertifiedCase c = of(Metric::L2, 1140, d);
            c.q = std::max<int64_t>(c.q, 4000);
            c.dataType = DataType::Float16;
            std::vector<float> vectors = makeHard(kind, c.n, c.d, 1);
            std::vector<float> queries = makeHard(kind, c.q, c.d, 2);
            roundAllTo(c.dataType, vectors);
            roundAllTo(c.dataType, queries);
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result, c.q);
        }
    }
}

/// Any number of queries a scan, the last of them fewer: the same bits.
TEST_F(NearestKnn, LittleScratch) {
    CertifiedCase c = of(Metric::L2, 500, 32);
    c.q = 140001;
    const std::vector<float> vectors = makeHard(Hard::Clusters, c.n, c.d, 1);
    const std::vector<float> queries = makeHard(Hard::Clusters, c.q, c.d, 2);
    const KnnResult all = search(c, vectors, queries);
    check(c, vectors, queries, all, 200);
    const idx_t roomy = planOf(c).nearest->tileQueries;
    c.maxScratch = size_t(6) << 20;
    ASSERT_TRUE(planOf(c).nearest);
    EXPECT_LT(planOf(c).nearest->tileQueries, roomy / 4);
    EXPECT_TRUE(search(c, vectors, queries) == all);
    c.maxScratch = 0;
    EXPECT_FALSE(planOf(c).nearest);
    EXPECT_TRUE(search(c, vectors, queries) == all);
}

/// The proof succeeds for nearly all queries of ordinary data.
TEST_F(NearestKnn, HardlyAnyIsRepeated) {
    for (Metric metric : kProducts) {
        for (int d : {16, 128}) {
            CertifiedCase c = of(metric, 4000, d);
            c.q = 4000;
            std::mt19937 random(3);
            std::normal_distribution<float> normal;
            std::vector<float> vectors(c.n * c.d);
            std::vector<float> queries(c.q * c.d);
            for (std::vector<float>* rows : {&vectors, &queries}) {
                for (float& one : *rows) {
                    one = normal(random);
                }
            }
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result);
            EXPECT_LE(result.repeated, unsigned(c.q / 200)) << c.describe();
        }
    }
}

TEST_F(NearestKnn, Takes) {
    CertifiedCase c = of(Metric::L2, 4096, 128);
    c.q = 1000;
    EXPECT_TRUE(planOf(c).nearest);
    c.k = 2;
    EXPECT_FALSE(planOf(c).nearest);
    c.k = 1;
    c.metric = Metric::L1;
    EXPECT_FALSE(planOf(c).nearest);
    c.metric = Metric::L2;
    c.q = 16;
    EXPECT_FALSE(planOf(c).nearest);
    c.q = 4000;
    for (int64_t n : {2048, 2049}) {
        c.n = n;
        const FlatKnnPlan plan = planOf(c);
        const bool isAtOnce = n == 2048 &&
                hasTensorScan(TensorScanKernel::Wgmma, traitsOf(c));
        EXPECT_EQ(plan.nearest.has_value(), !isAtOnce);
        EXPECT_EQ(plan.fused && plan.fused->atOnce, isAtOnce);
    }
}

TEST_F(NearestKnn, Small) {
    for (Metric metric : kProducts) {
        for (Hard kind : {Hard::Bytes, Hard::Infinite, Hard::Duplicates}) {
            CertifiedCase c = of(metric, 300, 700);
            expectCanonical(c, kind);
        }
    }
}

} // namespace
} // namespace faiss_bits::test
