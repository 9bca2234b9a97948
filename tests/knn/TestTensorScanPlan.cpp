/// How scans are cut, the error bound where it can be worked out by hand, and
/// whether their products answer.

#include <cmath>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "kernels/knn/FlatKnnSummary.h"
#include "kernels/knn/fused/Overfull.h"
#include "kernels/knn/fused/tensor/TensorScanBound.h"
#include "kernels/knn/fused/tensor/TensorScanPlan.h"
#include "tests/knn/TensorKernelTest.h"

namespace faiss_bits::test {
namespace {

/// Every unit of vectors meets every tile of queries once.
TEST(TensorScanPlan, Covers) {
    for (uint32_t queries : {1u, 256u, 257u, 10240u, 262144u}) {
        for (uint32_t vectors :
             {1u, 128u, 129u, 5000u, 1u << 20, 3000000000u}) {
            for (const ScanShape& shape :
                 {ScanShape{256, 128, 256},
                  ScanShape{256, 512, 32},
                  ScanShape{128, 256, 1536}}) {
                TensorScanParams params{};
                params.numQueries = queries;
                params.numVectors = vectors;
                planChunks(params, shape, 132);
                SCOPED_TRACE(
                        "queries " + std::to_string(queries) + " vectors " +
                        std::to_string(vectors) + " unit " +
                        std::to_string(shape.unit));
                EXPECT_GE(uint64_t(params.queryTiles) * shape.queries, queries);
                EXPECT_LT(
                        uint64_t(params.queryTiles - 1) * shape.queries,
                        queries);
                EXPECT_GE(uint64_t(params.units) * shape.unit, vectors);
                EXPECT_LT(uint64_t(params.units - 1) * shape.unit, vectors);
                ASSERT_GT(params.items, 0u);
                ASSERT_EQ(params.items % params.queryTiles, 0u);
                const uint64_t chunks = params.items / params.queryTiles;
                EXPECT_GE(chunks * params.unitsPerChunk, params.units);
                EXPECT_LT((chunks - 1) * params.unitsPerChunk, params.units);
                // Each has a unit, and no more than the plan counts.
                EXPECT_EQ(params.chunks, chunks);
                EXPECT_LE(chunks, params.units);
                EXPECT_LE(
                        (params.units + chunks - 1) / chunks,
                        params.unitsPerChunk);
            }
        }
    }
}

/// 10,240 queries and 2^20 vectors: hardly a block is ever idle.
TEST(TensorScanPlan, FillsTurns) {
    for (uint32_t queries : {1024u, 10240u}) {
        TensorScanParams params{};
        params.numQueries = queries;
        params.numVectors = 1 << 20;
        planChunks(params, {256, 128, 256}, 132);
        const double turns = std::ceil(params.items / 132.0);
        const double work = double(params.units) * params.queryTiles / 132;
        EXPECT_LT(turns * params.unitsPerChunk, 1.03 * work);
    }
}

TEST(TensorScanBound, Terms) {
    // Without residuals: accumulation and rounding alone.
    const double small =
            tensorScanError(Metric::InnerProduct, 112, 1, 0, 1, 0, 0);
    EXPECT_NEAR(small, 128 * 0x1p-22 + 0x1p-22, 1e-8);
    // Residuals: r_x |q'| + |x| r_q.
    const double residuals =
            tensorScanError(Metric::InnerProduct, 112, 10, 0.5, 3, 0.25, 0);
    EXPECT_NEAR(residuals, 0.25 * 10.5 + 3 * 0.5, 1e-2);
    // Squared distances have the product twice, and norms.
    EXPECT_GT(
            tensorScanError(Metric::L2, 112, 10, 0.5, 3, 0.25, 0),
            2 * residuals);
    EXPECT_NEAR(
            tensorScanError(Metric::L2, 112, 10, 0.5, 3, 0.25, 0),
            2 * residuals,
            1e-2);
    // Cosines have a bound of their own: TestCosineBound.cpp.
    EXPECT_EQ(tensorScanError(Metric::Cosine, 64, 1, 0, 1, 0, 0), INFINITY);
}

TEST(TensorScanBound, NothingIsProved) {
    EXPECT_EQ(tensorScanError(Metric::L2, 8, 1e19, 0, 1, 0, 0), INFINITY);
    EXPECT_EQ(tensorScanError(Metric::L2, 8, 1, 0, INFINITY, 0, 0), INFINITY);
    EXPECT_EQ(tensorScanError(Metric::L2, 8, 1, 0, NAN, 0, 0), INFINITY);
    EXPECT_EQ(tensorScanError(Metric::L2, 8, 1, INFINITY, 1, 0, 0), INFINITY);
    EXPECT_EQ(tensorScanError(Metric::L1, 8, 1, 0, 1, 0, 0), INFINITY);
    EXPECT_EQ(tensorScanError(Metric::L2, 1 << 21, 1, 0, 1, 0, 0), INFINITY);
    // A product of a large and a small length is within range.
    EXPECT_LT(
            tensorScanError(Metric::InnerProduct, 8, 1e25, 0, 1e-5, 0, 0),
            INFINITY);
    EXPECT_EQ(
            tensorScanError(Metric::InnerProduct, 8, 1e25, 0, 1e15, 0, 0),
            INFINITY);
}

/// As every number of units that makes enough chunks would do it.
TEST(TensorScanPlan, StripChunksAreTheBestOfAll) {
    const ScanShape shape{256, 128, 256};
    for (uint32_t queries : {17u, 300u, 5000u, 16384u}) {
        for (uint32_t vectors :
             {1u, 128u, 129u, 257u, 900u, 5000u, 40000u, 1u << 20}) {
            for (uint32_t blocks : {1u, 108u, 132u, 1000u}) {
                for (uint32_t least : {1u, 2u, 3u, 7u, 16u, 64u}) {
                    TensorScanParams params{};
                    params.numQueries = queries;
                    params.numVectors = vectors;
                    planStripChunks(params, shape, blocks, least);
                    const uint64_t all = (vectors + 127) / 128;
                    const uint64_t tiles = (queries + 255) / 256;
                    const uint64_t chunks = std::min<uint64_t>(least, all);
                    const auto turnsOf = [&](uint64_t units) {
                        const uint64_t items =
                                (all + units - 1) / units * tiles;
                        return (items + blocks - 1) / blocks * (units + 2);
                    };
                    uint64_t best = UINT64_MAX;
                    uint64_t wanted = 0;
                    for (uint64_t units = all; units >= 1; --units) {
                        const uint64_t made = (all + units - 1) / units;
                        const bool fits =
                                made >= chunks && units * chunks <= all;
                        if (fits && units * 2 * chunks >= all &&
                            turnsOf(units) < best) {
                            best = turnsOf(units);
                            wanted = units;
                        }
                    }
                    ASSERT_EQ(params.unitsPerChunk, wanted)
                            << queries << " x " << vectors << ", " << blocks
                            << " blocks, " << least << " chunks";
                    EXPECT_EQ(
                            params.items, (all + wanted - 1) / wanted * tiles);
                }
            }
        }
    }
}

/// What tests may be skipped for.
TEST(TensorScanKernels, LackForDevicesAndBuilds) {
    const auto wgmma = [](int capability, const char* architectures) {
        return lackFor(TensorScanKernel::Wgmma, capability, architectures);
    };
    for (const char* built : {"90", "90-real", "90a", "80,90a-real", "all"}) {
        EXPECT_EQ(wgmma(90, built), "") << built;
    }
    EXPECT_NE(wgmma(90, "80,86-real").find("80,86-real"), std::string::npos);
    EXPECT_NE(wgmma(90, "190").find("190"), std::string::npos);
    for (int capability : {80, 89, 100, 120}) {
        EXPECT_NE(wgmma(capability, "all").find("9.0"), std::string::npos);
        EXPECT_EQ(lackFor(TensorScanKernel::MmaSync, capability), "");
    }
    EXPECT_NE(
            lackFor(TensorScanKernel::MmaSync, 75).find("7.5"),
            std::string::npos);
}

/// And that there is nothing else: each kernel is in the build that it can be
/// in.
TEST(TensorScanKernels, AreThereWhereNothingIsLacking) {
    for (int capability : {75, 80, 86, 89, 90, 100, 120}) {
        DeviceTraits device;
        device.computeCapability = capability;
        for (TensorScanKernel kernel :
             {TensorScanKernel::Wgmma, TensorScanKernel::MmaSync}) {
            EXPECT_EQ(
                    hasTensorScan(kernel, device),
                    lackFor(kernel, capability).empty())
                    << int(kernel) << " on " << capability;
        }
    }
}

/// An image for one search of a few queries takes longer than a matrix.
TEST(TensorScanPlan, FewQueriesWithoutImage) {
    const auto isFused = [](idx_t q, const void* image, idx_t n = 65535) {
        FlatKnnProblem p;
        p.numVectors = n;
        p.numQueries = q;
        p.d = 128;
        p.k = 10;
        p.device.singleToDouble = 2;
        p.searchImage = image;
        return planFlatKnn(p, size_t(1) << 30).fused.has_value();
    };
    const float image = 0; // never read
    for (idx_t q : {17, 64}) {
        EXPECT_FALSE(isFused(q, nullptr)) << q;
        EXPECT_TRUE(isFused(q, &image)) << q;
        EXPECT_TRUE(isFused(q, nullptr, (1 << 20) + 1)) << q;
    }
    EXPECT_TRUE(isFused(65, nullptr));
    EXPECT_TRUE(isFused(16, nullptr)); // component by component
}

/// Of many queries short ones go by tensor cores, but for the nearest of few.
TEST(TensorScanPlan, ShortCosines) {
    const auto isTensor = [](idx_t n, idx_t q, int d, int k) {
        FlatKnnProblem p;
        p.metric = Metric::Cosine;
        p.numVectors = n;
        p.numQueries = q;
        p.d = d;
        p.k = k;
        p.device.singleToDouble = 2;
        const FlatKnnPlan plan = planFlatKnn(p, size_t(1) << 30);
        return plan.nearest ||
                (plan.fused && plan.fused->method == &kTensorFusedMethod);
    };
    EXPECT_TRUE(isTensor(65536, 513, 13, 10));
    EXPECT_FALSE(isTensor(65536, 512, 13, 10));
    EXPECT_FALSE(isTensor(65536, 10000, 3, 10));
    EXPECT_TRUE(isTensor(65536, 10000, 13, 1));
    EXPECT_FALSE(isTensor(8192, 1000, 13, 1));
    EXPECT_FALSE(isTensor(1000, 10000, 13, 1));
}

/// A plan says by its candidates whether answers are the scan's products: none
/// has an exact distance then. Few queries are certified in fast mode too.
TEST(TensorScanPlan, FastSearchesHaveNoCandidates) {
    for (idx_t queries : {16, 65, 10240}) {
        FlatKnnProblem p;
        p.numVectors = 1 << 20;
        p.numQueries = queries;
        p.d = 128;
        p.k = 10;
        p.device.singleToDouble = 2;
        p.device.computeCapability = 90;
        for (SearchMode mode : {SearchMode::Certified, SearchMode::Fast}) {
            p.mode = mode;
            const FlatKnnPlan plan = planFlatKnn(p, size_t(1) << 30);
            ASSERT_TRUE(plan.fused) << queries;
            const FlatKnnSummary summary = summaryOf(plan, p, DeviceSpeed());
            const bool byProducts = mode == SearchMode::Fast && queries > 16;
            EXPECT_EQ(
                    summary.method,
                    queries > 16 ? "fused_tensor" : "fused_pairwise");
            EXPECT_EQ(summary.candidates, byProducts ? 0 : plan.fused->capacity)
                    << queries;
            EXPECT_GT(plan.fused->capacity, 10u);
        }
    }
}

/// Members of a second sample that pass, in strips at random: no query whose
/// list is just filled is left to a search again, and nearly all of which four
/// times as many vectors pass are.
TEST(TensorScanPlan, OverfullStrips) {
    for (int k : {10, 100, 1024}) {
        FlatKnnProblem p;
        p.numVectors = 1 << 20;
        p.numQueries = 10240;
        p.d = 128;
        p.k = k;
        p.device.singleToDouble = 2;
        p.device.computeCapability = 90;
        const FlatKnnPlan plan = planFlatKnn(p, size_t(1) << 30);
        ASSERT_TRUE(plan.fused) << k;
        const uint32_t strips = plan.fused->secondStrips.perRow;
        ASSERT_GT(strips, 0u) << k;
        const uint32_t overfull = overfullStrips(*plan.fused, p.numVectors);
        EXPECT_LE(overfull, strips) << k;
        std::mt19937 random(k);
        std::uniform_int_distribution<uint32_t> strip(0, strips - 1);
        const double share = plan.fused->secondSamples / double(p.numVectors);
        const auto shareLeft = [&](double passing) {
            constexpr int kQueries = 2000;
            std::binomial_distribution<int> members(int(passing), share);
            int left = 0;
            for (int i = 0; i < kQueries; ++i) {
                std::set<uint32_t> hit;
                for (int m = members(random); m > 0; --m) {
                    hit.insert(strip(random));
                }
                left += hit.size() >= overfull;
            }
            return left / double(kQueries);
        };
        EXPECT_EQ(shareLeft(plan.fused->capacity), 0) << k;
        EXPECT_GT(shareLeft(4.0 * plan.fused->capacity), 0.99) << k;
    }
}

} // namespace
} // namespace faiss_bits::test
