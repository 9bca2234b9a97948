/// Searches whose queries' images, limits and bits are made by one kernel:
/// every place is the canonical one, all within what is complete has passed,
/// and where distances can be told apart no query is repeated.

#include "kernels/knn/fused/tensor/PassAtOnce.h"
#include "kernels/knn/fused/tensor/VectorImage.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

/// Lists of fewer queries no warps finish.
constexpr int64_t kQueries = 1030;

class PassAtOnce : public FlatKnnCertified {
   protected:
    static CertifiedCase caseOf(int64_t n, int64_t q, int d, int k) {
        CertifiedCase c = FlatKnnCertified::caseOf(
                Direct::Strips, Metric::L2, n, q, d, k);
        c.keptImage = n % 2 == 0;
        c.imageInOrder = d % 2;
        return c;
    }

    static bool isAtOnce(const CertifiedCase& c) {
        const FlatKnnPlan plan = planOf(c);
        return plan.fused && plan.fused->atOnce;
    }

    void SetUp() override {
        FlatKnnCertified::SetUp();
        if (!HasFatalFailure() && !IsSkipped() &&
            deviceTraits().computeCapability != 90) {
            GTEST_SKIP() << "no wgmma";
        }
    }
};

TEST_F(PassAtOnce, HardData) {
    for (Hard kind : kHard) {
        for (int64_t n : {300, 1024}) {
            for (int d : {40, 101, 128}) {
                const CertifiedCase c = caseOf(n, kQueries, d, 32);
                ASSERT_TRUE(isAtOnce(c)) << c.describe();
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// Both sides of units, and of all of a group's; one slab and two.
TEST_F(PassAtOnce, NumbersOfVectors) {
    for (int d : {64, 65, 128}) {
        for (int64_t n : {256, 257, 384, 511, 512, 513, 640, 1023, 1024}) {
            const CertifiedCase c = caseOf(n, kQueries, d, 20);
            ASSERT_TRUE(isAtOnce(c)) << c.describe();
            const Result result = expectCanonical(c, Hard::Offset);
            if (HasFatalFailure()) {
                return;
            }
            EXPECT_LT(result.rescored, uint64_t(2 * 20 * kQueries));
        }
    }
}

/// Both sides of tiles; more of them than blocks.
TEST_F(PassAtOnce, NumbersOfQueries) {
    for (int64_t q : {1024, 1087, 1089, 20000}) {
        const CertifiedCase c = caseOf(512, q, 48, 16);
        ASSERT_TRUE(isAtOnce(c)) << c.describe();
        expectCanonical(c, Hard::Bytes);
        if (HasFatalFailure()) {
            return;
        }
    }
}

/// More than one launch of the scan has by lists.
TEST_F(PassAtOnce, ManyQueries) {
    const CertifiedCase c = caseOf(256, 140000, 48, 16);
    ASSERT_TRUE(isAtOnce(c)) << c.describe();
    ASSERT_EQ(planOf(c).fused->tileQueries, c.q);
    expectCanonical(c, Hard::Bytes);
}

/// The results of lists that others finish, and 16-bit vectors.
TEST_F(PassAtOnce, SmallRanksAndTypes) {
    for (int k : {16, 33, 64}) {
        for (DataType type : {DataType::Float32, DataType::Float16}) {
            CertifiedCase c = caseOf(1000, kQueries, 96, k);
            c.dataType = type;
            ASSERT_TRUE(isAtOnce(c)) << c.describe();
            expectCanonical(c, Hard::Clusters);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Shapes that have no such kernel go another way.
TEST_F(PassAtOnce, OtherShapes) {
    EXPECT_FALSE(isAtOnce(caseOf(1025, kQueries, 128, 32)));
    EXPECT_FALSE(isAtOnce(caseOf(1024, kQueries, 129, 32)));
    EXPECT_FALSE(isAtOnce(caseOf(1024, kQueries, 32, 32)));
    EXPECT_FALSE(isAtOnce(caseOf(1024, kQueries, 128, 65)));
    CertifiedCase c = caseOf(1024, kQueries, 128, 32);
    c.metric = Metric::InnerProduct;
    EXPECT_FALSE(isAtOnce(c));
}

/// What the kernel says alone: nothing within `complete` is missing.
TEST_F(PassAtOnce, AllWithinHavePassed) {
    constexpr int64_t kN = 900;
    constexpr int kD = 100;
    constexpr uint32_t kWords = (kN + 31) / 32;
    for (Hard kind : kHard) {
        SCOPED_TRACE(int(kind));
        const std::vector<float> vectors = makeHard(kind, kN, kD, 1);
        const std::vector<float> queries = makeHard(kind, kQueries, kD, 2);
        const DeviceBuffer<float> deviceVectors(vectors);
        const DeviceBuffer<float> deviceQueries(queries);
        DeviceBuffer<float> greatest(2);
        DeviceBuffer<uint8_t> memory(tensorImageBytes(kN, kD, false), 0x7E);
        const SpreadRows rows = spreadRowsOf(kN);
        TensorImageProblem image;
        image.rows = deviceVectors.data();
        image.n = kN;
        image.d = kD;
        image.greatest = greatest.data();
        image.image = tensorImageAt(memory.data(), kN, kD, false);
        // Without a center images have the norms that are given.
        const DeviceBuffer<float> center(std::vector<float>(kD, 0.0f));
        image.center = center.data();
        runGreatestComponent(
                image.rows,
                DataType::Float32,
                kN,
                kD,
                center.data(),
                false,
                greatest.data(),
                nullptr);
        runVectorImage(image, {rows, true}, nullptr);
        DeviceBuffer<float> norms(kQueries, 0xA5);
        DeviceBuffer<float> residuals(kQueries, 0xA5);
        DeviceBuffer<float> complete(kQueries, 0xA5);
        DeviceBuffer<uint32_t> bits(kQueries * kWords, 0xA5);
        PassAtOnceProblem p;
        p.queries = deviceQueries.data();
        p.numQueries = kQueries;
        p.numVectors = kN;
        p.d = kD;
        p.center = center.data();
        p.vectors = image.image;
        p.rank = 10;
        p.queryNorms = norms.data();
        p.queryResiduals = residuals.data();
        p.complete = complete.data();
        p.bits = bits.data();
        p.words = kWords;
        runPassAtOnce(p, deviceTraits(), nullptr);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        const std::vector<float> within = complete.download();
        const std::vector<uint32_t> passed = bits.download();
        for (int64_t q = 0; q < kQueries; ++q) {
            const uint32_t* its = passed.data() + q * kWords;
            for (int64_t v = 0; v < kN; ++v) {
                double distance = 0;
                for (int c = 0; c < kD; ++c) {
                    const double off = double(queries[q * kD + c]) -
                            double(vectors[v * kD + c]);
                    distance += off * off;
                }
                const uint32_t row = rows.rowOf(uint32_t(v));
                if (float(distance) <= within[q]) {
                    ASSERT_TRUE(its[row / 32] >> row % 32 & 1)
                            << q << " " << v << " " << distance;
                }
            }
            ASSERT_EQ(its[kWords - 1] >> kN % 32, 0u) << "bits behind n";
        }
    }
}

} // namespace
} // namespace faiss_bits::test
