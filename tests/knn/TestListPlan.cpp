/// Which lists of what passed are finished by warps, scored from a copy, or
/// bits: without a device.

#include <gtest/gtest.h>

#include "kernels/knn/fused/FusedLists.h"
#include "kernels/knn/fused/tensor/TensorScan.h"

namespace faiss_bits::test {
namespace {

/// Which searches by strips have lists that a warp each finishes.
TEST(ListPlan, ListsOfWarps) {
    const auto byWarps = [](idx_t n, idx_t q, int d, int k) {
        FlatKnnProblem p;
        p.numVectors = n;
        p.numQueries = q;
        p.d = d;
        p.k = k;
        p.device.singleToDouble = 2;
        p.device.computeCapability = 90;
        const auto plan = planFusedByStrips(p, size_t(1) << 30);
        EXPECT_TRUE(plan) << n << " " << q << " " << d << " " << k;
        return plan && finishesByWarps(*plan, p);
    };
    EXPECT_TRUE(byWarps(4096, 1024, 128, 32));
    EXPECT_FALSE(byWarps(4096, 1023, 128, 32)) << "few queries";
    EXPECT_TRUE(byWarps(65536, 262144, 128, 128));
    EXPECT_FALSE(byWarps(65536, 262144, 128, 129)) << "k";
    EXPECT_FALSE(byWarps(65537, 262144, 128, 128)) << "32 MiB of vectors";
    FlatKnnProblem p;
    p.numVectors = 4096;
    p.numQueries = 4096;
    p.d = 128;
    p.k = 32;
    EXPECT_FALSE(finishesByWarps(FusedPlan(), p)) << "no strips";
}

/// Which of them are scored from a copy of the vectors, and that it is in the
/// scratch.
TEST(ListPlan, ListsScoredBySlots) {
    const auto problemOf = [](idx_t n, int d, DataType type) {
        FlatKnnProblem p;
        p.numVectors = n;
        p.numQueries = 4096;
        p.d = d;
        p.k = 32;
        p.dataType = type;
        p.device.singleToDouble = 2;
        p.device.computeCapability = 90;
        return p;
    };
    const auto bySlots = [&](idx_t n, int d, DataType type) {
        const FlatKnnProblem p = problemOf(n, d, type);
        const auto plan = planFusedByStrips(p, size_t(1) << 30);
        EXPECT_TRUE(plan && finishesByWarps(*plan, p)) << n << " " << d;
        return plan && scoresBySlots(*plan, p);
    };
    EXPECT_TRUE(bySlots(1024, 128, DataType::Float32));
    EXPECT_TRUE(bySlots(65536, 128, DataType::Float32));
    EXPECT_TRUE(bySlots(65536, 128, DataType::Float16));
    EXPECT_FALSE(bySlots(65537, 128, DataType::Float16)) << "32 MiB of copy";
    EXPECT_FALSE(bySlots(1024, 129, DataType::Float32)) << "dimensions";
    EXPECT_TRUE(bySlots(1024, 20, DataType::Float32));
    FlatKnnProblem few = problemOf(5000, 100, DataType::Float32);
    few.k = 5;
    const auto ofFew = planFusedByStrips(few, size_t(1) << 30);
    EXPECT_TRUE(ofFew && finishesByWarps(*ofFew, few));
    EXPECT_FALSE(ofFew && scoresBySlots(*ofFew, few)) << "few pass";
    const auto bytesOf = [&](idx_t n, int k) {
        FlatKnnProblem p = problemOf(n, 128, DataType::Float16);
        p.k = k;
        return planFusedByStrips(p, size_t(1) << 30)->bytes;
    };
    EXPECT_GE(
            bytesOf(65536, 33) + (size_t(8) << 20),
            bytesOf(65537, 33) + (size_t(32) << 20));
    EXPECT_LT(bytesOf(65536, 32) + (size_t(32) << 20), bytesOf(65536, 33))
            << "entries of lists that one kernel scores and sorts";
}

/// How many queries a scan has.
TEST(ListPlan, QueriesOfAScan) {
    const auto queriesOf = [](idx_t n, idx_t q, int k) {
        FlatKnnProblem p;
        p.numVectors = n;
        p.numQueries = q;
        p.d = 128;
        p.k = k;
        p.device.singleToDouble = 2;
        p.device.computeCapability = 90;
        const auto plan = planFusedByStrips(p, size_t(1) << 30);
        EXPECT_TRUE(plan);
        // A search with just these bytes has the same plan.
        const auto again = plan ? planFusedByStrips(p, plan->bytes) : plan;
        EXPECT_TRUE(again && again->tileQueries == plan->tileQueries);
        return plan ? plan->tileQueries : 0;
    };
    // All of them where one kernel does what leads to the bits.
    EXPECT_GE(queriesOf(1024, 262144, 32), 131072) << "16 MiB of bits";
    DeviceTraits device;
    device.computeCapability = 90;
    const int more = hasTensorScan(TensorScanKernel::Wgmma, device) ? 2 : 1;
    EXPECT_EQ(queriesOf(2048, 262144, 32), more * 131072) << "64 MiB, or 32";
    EXPECT_EQ(queriesOf(4096, 262144, 32), more * 65536) << "64 MiB, or 32";
    EXPECT_EQ(queriesOf(16384, 262144, 32), 65536) << "lists";
    EXPECT_EQ(queriesOf(16384, 65537, 32), 32769) << "even tiles";
    EXPECT_LT(queriesOf(16384, 262144, 33), 65536) << "entries in memory";
}

/// One kernel does what leads to the bits: of few vectors always; of more by
/// clusters, where queries and strips are many.
TEST(ListPlan, AtOnce) {
    FlatKnnProblem p;
    p.d = 128;
    p.device.singleToDouble = 2;
    p.device.computeCapability = 90;
    if (!hasTensorScan(TensorScanKernel::Wgmma, p.device)) {
        GTEST_SKIP() << "no wgmma in this build";
    }
    const auto isAtOnce = [&p](idx_t n, idx_t q, int k) {
        p.numVectors = n;
        p.numQueries = q;
        p.k = k;
        const auto plan = planFusedByStrips(p, size_t(1) << 30);
        return plan && plan->atOnce;
    };
    EXPECT_TRUE(isAtOnce(1024, 3000, 32));
    EXPECT_TRUE(isAtOnce(1024, 262144, 32));
    EXPECT_TRUE(isAtOnce(2048, 262144, 32));
    EXPECT_TRUE(isAtOnce(4096, 262144, 32));
    EXPECT_TRUE(isAtOnce(4096, 65536, 32));
    EXPECT_FALSE(isAtOnce(4096, 65535, 32)) << "few tiles";
    EXPECT_FALSE(isAtOnce(4096, 262144, 33)) << "strips of a place";
    EXPECT_TRUE(isAtOnce(1025, 262144, 32));
    EXPECT_TRUE(isAtOnce(2048, 262144, 32));
    EXPECT_FALSE(isAtOnce(2049, 262144, 9)) << "as long as for 4,096 vectors";
    EXPECT_FALSE(isAtOnce(2560, 262144, 5));
    EXPECT_TRUE(isAtOnce(2561, 262144, 9));
    EXPECT_TRUE(isAtOnce(2049, 262144, 4)) << "few pass";
    EXPECT_TRUE(isAtOnce(4096, 10000, 2)) << "few pass";
    EXPECT_FALSE(isAtOnce(4096, 9999, 2));
    EXPECT_TRUE(isAtOnce(2048, 3000, 1));
    EXPECT_FALSE(isAtOnce(2049, 262144, 1)) << "the nearest one";
    EXPECT_FALSE(isAtOnce(4097, 262144, 32));
}

/// Where a word of 32 vectors has some that pass, the scan sets bits.
TEST(ListPlan, BitsOfFewVectors) {
    FlatKnnProblem p;
    p.numVectors = 4096;
    p.numQueries = 262144;
    p.d = 128;
    p.k = 32;
    p.device.singleToDouble = 2;
    p.device.computeCapability = 90;
    const auto toBits = [&] {
        const auto plan = planFusedByStrips(p, size_t(1) << 30);
        EXPECT_TRUE(plan && scoresBySlots(*plan, p));
        return plan && passesToBits(*plan, p);
    };
    EXPECT_TRUE(toBits());
    EXPECT_EQ(wordsOf(p), 128u);
    p.numVectors = 1025;
    EXPECT_TRUE(toBits());
    EXPECT_EQ(wordsOf(p), 33u);
    p.numVectors = 16384;
    EXPECT_FALSE(toBits()) << "few pass";
    p.k = 120;
    EXPECT_FALSE(toBits()) << "64 MiB of bits";
    p.numQueries = 16384;
    EXPECT_TRUE(toBits());
    p.d = 129;
    p.numVectors = 4096;
    const auto plan = planFusedByStrips(p, size_t(1) << 30);
    EXPECT_FALSE(plan && passesToBits(*plan, p)) << "dimensions";
}

} // namespace
} // namespace faiss_bits::test
