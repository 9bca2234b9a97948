/// Certified searches whose scan may be in 8 bits: every place
/// is the canonical one, whichever scan the data make the device choose.

#include <cstring>

#include "kernels/knn/fused/ByteSearch.h"
#include "kernels/knn/fused/SampleKernels.h"
#include "kernels/knn/fused/tensor/TensorScan.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class FusedBytes : public FlatKnnCertified {
   protected:
    static CertifiedCase of(int k, int d, int64_t q = 18) {
        CertifiedCase c;
        c.metric = Metric::L2;
        c.n = 524288 + 77;
        c.q = q;
        c.d = d;
        c.k = k;
        c.keptImage = true;
        return c;
    }

    static bool hasBytes(const CertifiedCase& c) {
        FlatKnnProblem p = shapeOf(c);
        p.imageHasBytes = c.imageHasBytes;
        p.imageInOrder = c.imageInOrder;
        return hasByteImage(p);
    }

    static std::vector<float> uniform(int64_t rows, int d, uint32_t seed) {
        std::mt19937 random(seed);
        std::vector<float> out(size_t(rows) * d);
        for (float& one : out) {
            one = float(random() >> 8) * 0x1p-24f;
        }
        return out;
    }

    /// As without 8 bits, and canonical for some queries: the oracle reads half
    /// a gigabyte for each.
    Result expectSame(
            CertifiedCase c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries,
            Result* without = nullptr) {
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result, 4);
        c.imageHasBytes = false;
        const Result other = search(c, vectors, queries);
        EXPECT_EQ(result.ids, other.ids) << c.describe();
        EXPECT_EQ(
                std::memcmp(
                        result.distances.data(),
                        other.distances.data(),
                        result.distances.size() * sizeof(float)),
                0)
                << c.describe();
        if (without) {
            *without = other;
        }
        return result;
    }
};

TEST_F(FusedBytes, Which) {
    const bool isHopper =
            hasTensorScan(TensorScanKernel::Wgmma, deviceTraits());
    EXPECT_EQ(hasBytes(of(10, 65)), isHopper);
    EXPECT_EQ(hasBytes(of(10, 1024)), isHopper);
    EXPECT_FALSE(hasBytes(of(10, 64)));
    EXPECT_FALSE(hasBytes(of(10, 1025)));
    CertifiedCase c = of(10, 512);
    c.imageInOrder = true;
    EXPECT_FALSE(hasBytes(c));
    c = of(10, 512);
    c.metric = Metric::InnerProduct;
    EXPECT_FALSE(hasBytes(c));
    c = of(10, 512);
    c.n = 100000;
    EXPECT_FALSE(hasBytes(c));
}

class FusedBytesOf : public FusedBytes,
                     public ::testing::WithParamInterface<int> {};

TEST_P(FusedBytesOf, Uniform) {
    const int d = GetParam();
    const auto vectors = uniform(of(1, d).n, d, 1);
    const int64_t many = std::max(300, 65536 / d + 1);
    const auto queries = uniform(many, d, 2);
    for (int k : {1, 10, 100}) {
        // So many that lists are cut by their products, and fewer.
        const CertifiedCase c = of(k, d, k == 10 ? many : 150);
        const std::vector<float> own(
                queries.begin(), queries.begin() + c.q * d);
        Result without;
        const Result result = expectSame(c, vectors, own, &without);
        EXPECT_LE(result.repeated, 1u) << c.describe();
        // By 8 bits more have to be looked at: they were scanned so. Of so few
        // vectors k = 100 is near the edge, and of short ones k = 10.
        if (hasBytes(c) && (k == 1 || (k == 10 && d >= 128))) {
            EXPECT_GT(result.rescored, without.rescored) << c.describe();
        }
        if (HasFatalFailure()) {
            return;
        }
    }
}

/// The second tile's queries are far too long for 8 bits: they go by 16.
TEST_P(FusedBytesOf, TilesOfTheirOwn) {
    const int d = GetParam();
    constexpr int64_t kTile = ByteSearch::kTileQueries;
    const CertifiedCase c = of(10, d, 2 * kTile + 40);
    const auto vectors = uniform(c.n, d, 1);
    auto queries = uniform(c.q, d, 2);
    for (int64_t i = kTile; i < 2 * kTile; ++i) {
        queries[size_t(i) * d] = 3000;
    }
    queries[size_t(2 * kTile + 30) * d + 7] = std::nanf("");
    queries[size_t(2 * kTile + 31) * d + 7] = INFINITY;
    expectSame(c, vectors, queries);
}

TEST_P(FusedBytesOf, HardData) {
    for (Hard kind :
         {Hard::Offset,
          Hard::Bytes,
          Hard::Clusters,
          Hard::Duplicates,
          Hard::Mixed,
          Hard::Infinite}) {
        const CertifiedCase c =
                of(kind == Hard::Bytes ? 101 : 10, GetParam(), 40);
        SCOPED_TRACE(c.describe() + " data " + std::to_string(int(kind)));
        const auto vectors = makeHard(kind, c.n, c.d, 1);
        const auto queries = makeHard(kind, c.q, c.d, 2);
        expectSame(c, vectors, queries);
        if (HasFatalFailure()) {
            return;
        }
    }
}

/// Lengths around that at which no bound is left (2^60). Nine of the second
/// sample are far nearer than all others, so that the limit lies below the
/// tenth.
TEST_F(FusedBytes, Huge) {
    constexpr int d = 512;
    const CertifiedCase c = of(10, d);
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    const auto ofLength = [&](float* row, double length) {
        double sum = 0;
        for (int j = 0; j < d; ++j) {
            sum += double(row[j]) * row[j];
        }
        for (int j = 0; j < d; ++j) {
            row[j] = float(row[j] / std::sqrt(sum) * length);
        }
    };
    std::vector<float> direction(d);
    for (float& one : direction) {
        one = normal(random);
    }
    std::vector<float> vectors = uniform(c.n, d, 1);
    for (float& one : vectors) {
        one -= 0.5f;
    }
    DeviceBuffer<int32_t> sample(c.n / 16);
    runSampleIds(c.n, c.n / 16, sample.data(), nullptr);
    const std::vector<int32_t> ids = sample.download();
    for (int i = 0; i < 9; ++i) {
        for (int j = 0; j < d; ++j) {
            vectors[size_t(ids[i]) * d + j] =
                    direction[j] + 0.001f * normal(random);
        }
    }
    for (int64_t i = 0; i < c.n; ++i) {
        ofLength(&vectors[size_t(i) * d], 0x1p57);
    }
    std::vector<float> queries;
    for (int64_t i = 0; i < c.q; ++i) {
        queries.insert(queries.end(), direction.begin(), direction.end());
        ofLength(&queries[size_t(i) * d], std::exp2(58.5 + 0.1 * double(i)));
    }
    expectSame(c, vectors, queries);
}

INSTANTIATE_TEST_SUITE_P(
        Dims,
        FusedBytesOf,
        ::testing::Values(65, 128, 258, 514));

} // namespace
} // namespace faiss_bits::test
