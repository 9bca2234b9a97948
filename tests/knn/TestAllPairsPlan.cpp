/// Where searches go by all pairs: without a device.

#include <gtest/gtest.h>

#include "kernels/knn/FlatKnn.h"
#include "kernels/knn/FlatKnnPlan.h"
#include "kernels/knn/all_pairs/SplitPairs.h"
#include "kernels/knn/all_pairs/digits/DigitPairs.h"

namespace faiss_bits::test {
namespace {

/// With float64 at half of float32's rate; where it is slow there is no matrix.
bool isMatrixOf(idx_t n, idx_t q, int d, int k, Metric metric) {
    FlatKnnProblem p;
    p.metric = metric;
    p.numVectors = n;
    p.numQueries = q;
    p.d = d;
    p.k = k;
    p.device.singleToDouble = 32;
    EXPECT_FALSE(planFlatKnn(p, size_t(1) << 40).allPairs);
    p.device.singleToDouble = 2;
    return planFlatKnn(p, size_t(1) << 40).allPairs.has_value();
}

/// Many queries of few vectors, in few dimensions or with a large k.
TEST(AllPairsPlan, FewVectors) {
    const auto isMatrix =
            [](idx_t n, idx_t q, int d, int k, Metric metric = Metric::L2) {
                return isMatrixOf(n, q, d, k, metric);
            };
    EXPECT_TRUE(isMatrix(256, 262144, 128, 64));
    EXPECT_FALSE(isMatrix(256, 262144, 128, 32)); // all at once
    EXPECT_TRUE(isMatrix(256, 20000, 128, 32));
    EXPECT_TRUE(isMatrix(2047, 8191, 9, 2014));
    EXPECT_TRUE(isMatrix(2102, 2580, 65, 430));
    EXPECT_TRUE(isMatrix(4096, 100, 128, 10));
    EXPECT_TRUE(isMatrix(192, 262144, 128, 1));
    EXPECT_TRUE(isMatrix(256, 262144, 768, 1));
    EXPECT_FALSE(isMatrix(193, 262144, 128, 1)); // the nearest one
    EXPECT_FALSE(isMatrix(2048, 262144, 16, 1));
    // Few pairs of them, and more of cosines, whose image costs time.
    EXPECT_TRUE(isMatrix(2047, 512, 116, 1));
    EXPECT_TRUE(isMatrix(4096, 17, 1024, 1));
    EXPECT_TRUE(isMatrix(16384, 64, 64, 1));
    EXPECT_TRUE(isMatrix(4096, 500, 128, 1));
    EXPECT_FALSE(isMatrix(4096, 1000, 128, 1));
    EXPECT_FALSE(isMatrix(16384, 512, 128, 1));
    EXPECT_FALSE(isMatrix(16385, 64, 64, 1));
    EXPECT_TRUE(isMatrix(2047, 512, 116, 1, Metric::Cosine));
    EXPECT_TRUE(isMatrix(4096, 17, 1024, 1, Metric::Cosine));
    EXPECT_TRUE(isMatrix(4096, 1000, 128, 1, Metric::Cosine));
    EXPECT_FALSE(isMatrix(4096, 2000, 128, 1, Metric::Cosine));
    // So large a k that a sample makes no limits.
    EXPECT_TRUE(isMatrix(20046, 1025, 33, 2048, Metric::InnerProduct));
    EXPECT_TRUE(isMatrix(16385, 1000, 33, 1025));
    EXPECT_FALSE(isMatrix(16385, 1000, 33, 1024));
    EXPECT_TRUE(isMatrix(32767, 1000, 33, 2048));
    EXPECT_FALSE(isMatrix(32768, 1000, 33, 2048));
    EXPECT_FALSE(isMatrix(20046, 1025, 33, 2049));
    EXPECT_TRUE(isMatrix(512, 10000, 16, 10));
    EXPECT_FALSE(isMatrix(2048, 10000, 16, 10)); // strips
    EXPECT_FALSE(isMatrix(16384, 10000, 16, 10));
    EXPECT_FALSE(isMatrix(16384, 262144, 128, 32));
    EXPECT_FALSE(isMatrix(4096, 10000, 768, 10));
    EXPECT_FALSE(isMatrix(1 << 20, 10000, 2, 10));
}

/// Few queries: of cosines, of a large k, and of long vectors.
TEST(AllPairsPlan, FewQueries) {
    const auto isMatrix = [](idx_t n, idx_t q, int d, int k, Metric metric) {
        return isMatrixOf(n, q, d, k, metric);
    };
    for (idx_t q : {8, 16, 17, 64}) {
        EXPECT_EQ(isMatrix(131072, q, 128, 10, Metric::Cosine), q > 16) << q;
        EXPECT_FALSE(isMatrix(131072, q, 128, 10, Metric::L2)) << q;
    }
    EXPECT_FALSE(isMatrix(131072, 4, 128, 10, Metric::Cosine));
    EXPECT_FALSE(isMatrix(131072, 65, 128, 10, Metric::Cosine));
    EXPECT_TRUE(isMatrix(1 << 20, 64, 128, 10, Metric::Cosine));
    EXPECT_FALSE(isMatrix((1 << 20) + 1, 64, 128, 10, Metric::Cosine));
    EXPECT_TRUE(isMatrix(1 << 19, 64, 16, 10, Metric::Cosine));
    EXPECT_FALSE(isMatrix((1 << 19) + 1, 64, 16, 10, Metric::Cosine));
    for (idx_t q : {1, 16, 64}) {
        EXPECT_TRUE(isMatrix(65536, q, 11, 2048, Metric::InnerProduct)) << q;
        EXPECT_FALSE(isMatrix(65537, q, 11, 2048, Metric::InnerProduct)) << q;
        EXPECT_TRUE(isMatrix(16000, q, 11, 500, Metric::L2)) << q;
    }
    EXPECT_FALSE(isMatrix(16001, 16, 11, 500, Metric::L2));
    EXPECT_TRUE(isMatrix(8192, 16, 384, 60, Metric::L2));
    EXPECT_FALSE(isMatrix(8192, 4, 384, 60, Metric::L2));
    EXPECT_FALSE(isMatrix(8192, 16, 255, 1, Metric::L2));
}

/// Tiles of pairs are shared by so many blocks that these fill the device, and
/// have some steps each.
TEST(AllPairsPlan, Parts) {
    DeviceTraits device;
    device.multiprocessors = 132;
    const auto parts = [&](idx_t rows, idx_t n, int d) {
        return pairParts(rows, n, d, device);
    };
    EXPECT_EQ(parts(17, 4096, 1024), 2);
    EXPECT_EQ(parts(64, 33 * 64, 249), 4);
    EXPECT_EQ(parts(64, 33 * 64, 121), 4);
    EXPECT_EQ(parts(64, 33 * 64, 120), 2);
    EXPECT_EQ(parts(64, 33 * 64, 56), 1);
    EXPECT_EQ(parts(64, 16 * 64, 249), 8);
    EXPECT_EQ(parts(64, 16 * 64, 248), 4);
    EXPECT_EQ(parts(64, 16 * 64 + 1, 2048), 4);
    EXPECT_EQ(parts(64, 33 * 64 + 1, 2048), 2);
    EXPECT_EQ(parts(64, 132 * 64, 2048), 2);
    EXPECT_EQ(parts(64, 132 * 64 + 1, 2048), 1);
    EXPECT_EQ(parts(65, 66 * 64 + 1, 2048), 1);
    EXPECT_EQ(parts(17, 1, 2048), 8);
    EXPECT_EQ(parts(64, 264 * 64, 2048), 1);
    EXPECT_EQ(parts(64, 264 * 64 + 1, 2048), 0);
    device.computeCapability = 89;
    EXPECT_EQ(parts(17, 4096, 1024), 0);
}

/// More vectors than 16,384 have all pairs where so few queries want so many
/// that a scan takes longer.
TEST(AllPairsPlan, MoreVectors) {
    FlatKnnProblem p;
    const auto isAllPairs = [&](idx_t n, int d, idx_t q, int k) {
        p.numVectors = n;
        p.d = d;
        p.numQueries = q;
        p.k = k;
        return bool(planFlatKnn(p, size_t(1) << 30).allPairs);
    };
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        p.metric = metric;
        // Not null, and never read.
        p.searchImage = reinterpret_cast<const void*>(uintptr_t(256));
        EXPECT_TRUE(isAllPairs(19251, 11, 272, 155));
        EXPECT_TRUE(isAllPairs(22720, 15, 192, 100));
        EXPECT_TRUE(isAllPairs(17000, 8, 370, 500));
        EXPECT_FALSE(isAllPairs(17000, 8, 400, 500)) << "not at once";
        EXPECT_FALSE(isAllPairs(16500, 74, 209, 36));
        EXPECT_FALSE(isAllPairs(22086, 74, 74, 18));
        EXPECT_FALSE(isAllPairs(131073, 4, 47, 500));
        EXPECT_TRUE(isAllPairs(18000, 32, 300, 1000));
        EXPECT_FALSE(isAllPairs(18000, 33, 300, 1000));
        EXPECT_FALSE(isAllPairs(18000, 32, 300, 1001));
        EXPECT_TRUE(isAllPairs(18000, 4, 300, 1000));
        EXPECT_FALSE(isAllPairs(18000, 3, 300, 1000));
        p.searchImage = nullptr;
        EXPECT_FALSE(isAllPairs(19251, 11, 272, 155));
    }
}

/// More vectors than 16,384 whose candidates would be read for longer than
/// digits are multiplied: of a large k and many dimensions.
TEST(AllPairsPlan, MoreVectorsByDigits) {
    if (!hasDigitPairs(DeviceTraits())) {
        GTEST_SKIP() << "built for other GPUs";
    }
    const auto isAllPairs =
            [](idx_t n, int d, idx_t q, int k, Metric metric, DataType type) {
                FlatKnnProblem p;
                p.metric = metric;
                p.dataType = type;
                p.numVectors = n;
                p.d = d;
                p.numQueries = q;
                p.k = k;
                // Not null, and never read.
                p.searchImage = metric == Metric::Cosine
                        ? nullptr
                        : reinterpret_cast<const void*>(uintptr_t(256));
                return bool(planFlatKnn(p, size_t(1) << 30).allPairs);
            };
    for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
        const auto has = [&](idx_t n, int d, idx_t q, int k) {
            return isAllPairs(n, d, q, k, metric, DataType::Float32);
        };
        for (idx_t n : {16384, 16385}) {
            EXPECT_TRUE(has(n, 714, 4851, 511)) << n;
            EXPECT_FALSE(has(n, 714, 4851, 64)) << n;
        }
        EXPECT_FALSE(has(60000, 714, 4851, 512));
        EXPECT_FALSE(has(16385, 95, 4851, 511));
        EXPECT_FALSE(has(16385, 714, 4851, 1));
        EXPECT_FALSE(has(65537, 1536, 4851, 512));
    }
    EXPECT_FALSE(
            isAllPairs(16385, 1024, 16, 512, Metric::L2, DataType::Float32));
}

} // namespace
} // namespace faiss_bits::test
