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
                Direct::AtOnce, Metric::L2, n, q, d, k);
        c.keptImage = n % 2 == 0;
        c.imageInOrder = d % 2;
        return c;
    }

    static bool isAtOnce(const CertifiedCase& c) {
        const FlatKnnPlan plan = planOf(c);
        return plan.fused && plan.fused->atOnce;
    }

    std::string lack() const override {
        return deviceTraits().computeCapability == 90 ? "" : "no wgmma";
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

/// By clusters of four and of eight blocks.
TEST_F(PassAtOnce, HardDataInClusters) {
    for (Hard kind : kHard) {
        for (int64_t n : {1300, 3000}) {
            const int d = n == 1300 ? 40 : 101;
            const CertifiedCase c = caseOf(n, kQueries, d, 32);
            ASSERT_TRUE(isAtOnce(c)) << c.describe();
            expectCanonical(c, kind);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

/// Blocks with a unit more than others, with none, and with all.
TEST_F(PassAtOnce, NumbersOfVectorsInClusters) {
    for (int d : {64, 65, 128}) {
        for (int64_t n :
             {1025, 1151, 1153, 2047, 2048, 2049, 3071, 4095, 4096}) {
            const CertifiedCase c = caseOf(n, kQueries, d, 32);
            ASSERT_TRUE(isAtOnce(c)) << c.describe();
            const Result result = expectCanonical(c, Hard::Offset);
            if (HasFatalFailure()) {
                return;
            }
            // All strips have vectors: 37 are expected.
            EXPECT_LT(result.rescored, uint64_t(44 * kQueries));
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

/// The same of clusters: tiles of one group alone, and many of each.
TEST_F(PassAtOnce, NumbersOfQueriesInClusters) {
    for (int64_t n : {1280, 2500}) {
        for (int64_t q : {1024, 1025, 1087, 1089, 9000}) {
            const CertifiedCase c = caseOf(n, q, 48, 32);
            ASSERT_TRUE(isAtOnce(c)) << c.describe();
            expectCanonical(c, Hard::Bytes);
            if (HasFatalFailure()) {
                return;
            }
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

/// Results that eight lanes hold, and those of one more place: data of every
/// kind, words of a lane at both sides of four.
TEST_F(PassAtOnce, FewPlaces) {
    const int dims[] = {33, 64, 65, 128};
    int turn = 0;
    for (Hard kind : kHard) {
        for (int64_t n : {256, 1000, 1024, 1025, 4096}) {
            for (int k : {1, 2, 8, 9}) {
                CertifiedCase c = caseOf(n, kQueries, dims[turn++ % 4], k);
                c.idType = turn % 3 ? IdType::Int64 : IdType::Int32;
                c.dataType = turn % 5 ? DataType::Float32 : DataType::Float16;
                ASSERT_TRUE(isAtOnce(c)) << c.describe();
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// More vectors pass than a list may have: those of a query far from all that
/// differ little.
TEST_F(PassAtOnce, FewPlacesOfManyThatPass) {
    for (int k : {1, 8}) {
        const CertifiedCase c = caseOf(4000, kQueries, 40, k);
        ASSERT_TRUE(isAtOnce(c)) << c.describe();
        const std::vector<float> vectors(c.n * c.d, 0.5f);
        const std::vector<float> queries = makeHard(Hard::Bytes, c.q, c.d, 2);
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result);
        EXPECT_EQ(result.repeated, uint64_t(c.q));
    }
}

/// Of one place and of some, for tools that slow kernels down.
TEST_F(PassAtOnce, SmallFewPlaces) {
    for (int64_t n : {260, 1100}) {
        for (int k : {1, 3}) {
            const CertifiedCase c = caseOf(n, kQueries, 40 + 60 * (k > 1), k);
            ASSERT_TRUE(isAtOnce(c)) << c.describe();
            const Result result = expectCanonical(c, Hard::Offset);
            EXPECT_LT(result.rescored, uint64_t(4 * k * kQueries));
        }
    }
}

/// Of clusters, for tools that slow kernels down.
TEST_F(PassAtOnce, SmallClusters) {
    for (int64_t n : {1200, 2300}) {
        const CertifiedCase c = caseOf(n, kQueries, 33, 33);
        ASSERT_TRUE(isAtOnce(c)) << c.describe();
        expectCanonical(c, Hard::Clusters);
    }
}

/// Shapes that have no such kernel go another way.
TEST_F(PassAtOnce, OtherShapes) {
    EXPECT_FALSE(isAtOnce(caseOf(4097, kQueries, 128, 32)));
    EXPECT_FALSE(isAtOnce(caseOf(1024, kQueries, 129, 32)));
    EXPECT_FALSE(isAtOnce(caseOf(1024, kQueries, 32, 32)));
    EXPECT_FALSE(isAtOnce(caseOf(1024, kQueries, 128, 65)));
    CertifiedCase c = caseOf(1024, kQueries, 128, 32);
    c.metric = Metric::InnerProduct;
    EXPECT_FALSE(isAtOnce(c));
}

/// What the kernel says alone: nothing within `complete` is missing.
void expectAllWithin(Hard kind, int64_t n, uint32_t rank) {
    constexpr int kDims = 100;
    const uint32_t words = uint32_t((n + 31) / 32);
    SCOPED_TRACE(testing::Message() << int(kind) << " n=" << n);
    const std::vector<float> vectors = makeHard(kind, n, kDims, 1);
    const std::vector<float> queries = makeHard(kind, kQueries, kDims, 2);
    const DeviceBuffer<float> deviceVectors(vectors);
    const DeviceBuffer<float> deviceQueries(queries);
    DeviceBuffer<float> greatest(2);
    DeviceBuffer<uint8_t> memory(tensorImageBytes(n, kDims, false), 0x7E);
    const SpreadRows rows = spreadRowsOf(n);
    TensorImageProblem image;
    image.rows = deviceVectors.data();
    image.n = n;
    image.d = kDims;
    image.greatest = greatest.data();
    image.image = tensorImageAt(memory.data(), n, kDims, false);
    // Without a center images have the norms that are given.
    const DeviceBuffer<float> center(std::vector<float>(kDims, 0.0f));
    image.center = center.data();
    runGreatestComponent(
            image.rows,
            DataType::Float32,
            n,
            kDims,
            center.data(),
            false,
            greatest.data(),
            nullptr);
    runVectorImage(image, {rows, true}, nullptr);
    DeviceBuffer<float> norms(kQueries, 0xA5);
    DeviceBuffer<float> ownResiduals(kQueries, 0xA5);
    float* residuals = ownResiduals.data();
    DeviceBuffer<uint8_t> ofQueries(
            tensorImageBytes(kQueries, kDims, true), 0x7E);
    TensorImage queryImage;
    if (n > kMostVectorsOfBlock) {
        queryImage = tensorImageAt(ofQueries.data(), kQueries, kDims, true);
        residuals = queryImage.residuals;
        TensorImageProblem made;
        made.rows = deviceQueries.data();
        made.n = kQueries;
        made.d = kDims;
        made.areQueries = true;
        made.center = center.data();
        made.vectorFacts = image.image.facts;
        made.image = queryImage;
        made.outNorms = norms.data();
        runTensorImage(made, nullptr);
    }
    DeviceBuffer<float> complete(kQueries, 0xA5);
    DeviceBuffer<uint32_t> bits(kQueries * words, 0xA5);
    PassAtOnceProblem p;
    p.queries = deviceQueries.data();
    p.numQueries = kQueries;
    p.numVectors = n;
    p.d = kDims;
    p.center = center.data();
    p.vectors = image.image;
    p.rank = rank;
    p.queryNorms = norms.data();
    p.queryResiduals = residuals;
    p.queryImage = queryImage;
    p.complete = complete.data();
    p.bits = bits.data();
    p.words = words;
    runPassAtOnce(p, deviceTraits(), nullptr);
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
    const std::vector<float> within = complete.download();
    const std::vector<uint32_t> passed = bits.download();
    for (int64_t q = 0; q < kQueries; ++q) {
        const uint32_t* its = passed.data() + q * words;
        for (int64_t v = 0; v < n; ++v) {
            double distance = 0;
            for (int c = 0; c < kDims; ++c) {
                const double off = double(queries[q * kDims + c]) -
                        double(vectors[v * kDims + c]);
                distance += off * off;
            }
            const uint32_t row = rows.rowOf(uint32_t(v));
            if (float(distance) <= within[q]) {
                ASSERT_TRUE(its[row / 32] >> row % 32 & 1)
                        << q << " " << v << " " << distance;
            }
        }
        ASSERT_EQ(its[words - 1] >> n % 32, 0u) << "bits behind n";
    }
}

TEST_F(PassAtOnce, AllWithinHavePassed) {
    for (Hard kind : kHard) {
        for (int64_t n : {250, 500, 900, 1900, 3900}) {
            // Of few vectors: more strips.
            expectAllWithin(kind, n, n < 900 ? kLeastRankOfMoreStrips : 10);
            if (HasFatalFailure()) {
                return;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
