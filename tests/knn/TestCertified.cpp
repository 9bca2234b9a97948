/// Certified searches: every place is the canonical one, bit for bit, on data
/// whose float32 distances mislead; and the proof fails where it should.

#include "tests/knn/KnnHarness.h"

namespace faiss_bits::test {
namespace {

enum class Hard {
    Offset,     ///< far from the origin: float32 norms cancel
    Terrain,    ///< 256 heights up to 10,000
    Bytes,      ///< 0 .. 255, as SIFT: float32 is exact
    Clusters,   ///< tight ones
    Duplicates, ///< one vector in ten thousand places, and a few others
    Tiny,       ///< float32 denormals
    Huge,       ///< squares beyond float32; some distances too
    Mixed,      ///< of every size
    Infinite    ///< some components infinite or NaN
};

const std::vector<Hard> kHard = {
        Hard::Offset,
        Hard::Terrain,
        Hard::Bytes,
        Hard::Clusters,
        Hard::Duplicates,
        Hard::Tiny,
        Hard::Huge,
        Hard::Mixed,
        Hard::Infinite};

std::vector<float> makeHard(Hard kind, int64_t n, int d, uint32_t seed) {
    std::mt19937 random(seed);
    std::mt19937 shared(77); // centres that vectors and queries have in common
    std::normal_distribution<float> normal;
    std::vector<float> centres(16 * d);
    for (float& one : centres) {
        one = 100.f * normal(shared);
    }
    std::vector<float> values(n * d);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t centre = random() % 16;
        const bool odd = random() % 50 == 0;
        for (int j = 0; j < d; ++j) {
            float& value = values[i * d + j];
            const float unit = float(random() % 1000000) / 1e6f;
            switch (kind) {
                case Hard::Offset:
                    value = 1e4f + unit;
                    break;
                case Hard::Terrain:
                    value = float(random() % 256) * (10000.f / 255.f);
                    break;
                case Hard::Bytes:
                    value = float(random() % 256);
                    break;
                case Hard::Clusters:
                    value = centres[centre * d + j] + 1e-3f * normal(random);
                    break;
                case Hard::Duplicates:
                    value = odd ? unit : float(j % 7);
                    break;
                case Hard::Tiny:
                    value = unit * 1e-38f;
                    break;
                case Hard::Huge:
                    value = unit * (odd ? 3e38f : 1e19f);
                    break;
                case Hard::Mixed:
                    value = std::ldexp(unit - 0.5f, int(random() % 40) - 20);
                    break;
                case Hard::Infinite:
                    value = unit;
                    break;
            }
        }
        if (kind == Hard::Infinite && odd) {
            const float odds[] = {
                    HUGE_VALF, -HUGE_VALF, std::nanf(""), 3e38f, -3e38f};
            values[i * d + random() % d] = odds[random() % 5];
        }
    }
    return values;
}

struct CertifiedCase {
    Metric metric = Metric::L2;
    DataType dataType = DataType::Float32;
    int64_t n = 3000;
    int64_t q = 20;
    int d = 24;
    int k = 10;
    bool exactQueries = false; ///< float32 queries for 16-bit vectors
    size_t maxScratch = kRoomyScratch;
    IdType idType = IdType::Int64;

    std::string describe() const {
        std::ostringstream text;
        text << metricName(metric) << " " << nameOf(dataType) << " n=" << n
             << " q=" << q << " d=" << d << " k=" << k
             << (exactQueries ? " exact queries" : "")
             << " maxScratch=" << maxScratch;
        return text.str();
    }
};

class FlatKnnCertified : public FlatKnnTest {
   protected:
    struct Result : KnnResult {
        unsigned long long repeated = 0;
    };

    Result search(
            const CertifiedCase& c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries) {
        FlatKnnProblem p;
        p.metric = c.metric;
        p.dataType = c.dataType;
        p.numVectors = c.n;
        p.numQueries = c.q;
        p.d = c.d;
        p.k = c.k;
        p.idType = c.idType;
        p.device = deviceTraits();
        std::vector<float> rounded = queries;
        roundAllTo(c.dataType, rounded);
        DeviceBuffer<uint8_t> deviceVectors(packAs(c.dataType, vectors));
        DeviceBuffer<uint8_t> deviceQueries(packAs(c.dataType, rounded));
        DeviceBuffer<float> exact(queries);
        DeviceBuffer<float> outDistances(c.q * c.k, 0xA5);
        DeviceBuffer<uint8_t> outIds(c.q * c.k * sizeOf(c.idType), 0xA5);
        DeviceBuffer<unsigned long long> repeated(1, 0x00);
        p.vectors = deviceVectors.data();
        p.queries = deviceQueries.data();
        p.exactQueries = c.exactQueries ? exact.data() : nullptr;
        p.outDistances = outDistances.data();
        p.outIds = outIds.data();
        p.numRepeated = repeated.data();
        DeviceBuffer<uint8_t> scratch(flatKnnWorkspaceBytes(p, c.maxScratch));
        runFlatKnn(p, {scratch.data(), scratch.size()}, handle(), nullptr);
        Result result;
        result.distances = outDistances.download();
        result.ids = unpackIds(c.idType, outIds.download());
        result.repeated = repeated.download()[0];
        return result;
    }

    void check(
            const CertifiedCase& c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries,
            const KnnResult& result,
            int64_t most = 16) {
        for (int64_t i = 0; i < std::min(c.q, most); ++i) {
            const int64_t row = c.q <= most ? i : i * (c.q - 1) / (most - 1);
            ASSERT_TRUE(isCanonical(
                    canonicalTopK(
                            c.metric,
                            2,
                            queries.data() + row * c.d,
                            vectors.data(),
                            c.n,
                            c.d,
                            c.k),
                    isSimilarity(c.metric),
                    result.distances.data() + row * c.k,
                    result.ids.data() + row * c.k,
                    c.k))
                    << "query " << row << ", " << c.describe();
        }
    }

    Result expectCanonical(const CertifiedCase& c, Hard kind) {
        SCOPED_TRACE(c.describe() + " data " + std::to_string(int(kind)));
        std::vector<float> vectors = makeHard(kind, c.n, c.d, 1);
        std::vector<float> queries = makeHard(kind, c.q, c.d, 2);
        roundAllTo(c.dataType, vectors);
        if (!c.exactQueries) {
            roundAllTo(c.dataType, queries);
        }
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result);
        return result;
    }
};

TEST_F(FlatKnnCertified, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kMetrics) {
            for (int64_t q : {1, 2, 16, 17, 64, 200}) {
                for (int d : {1, 3, 8, 33, 128}) {
                    CertifiedCase c;
                    c.metric = metric;
                    c.q = q;
                    c.d = d;
                    expectCanonical(c, kind);
                    if (HasFatalFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(FlatKnnCertified, HardDataOfSixteenBits) {
    for (Hard kind : kHard) {
        for (Metric metric : kMetrics) {
            for (DataType type : {DataType::Float16, DataType::BFloat16}) {
                for (bool exactQueries : {false, true}) {
                    for (int64_t q : {3, 40}) {
                        CertifiedCase c;
                        c.metric = metric;
                        c.dataType = type;
                        c.exactQueries = exactQueries;
                        c.q = q;
                        c.d = 40;
                        c.k = 33;
                        expectCanonical(c, kind);
                        if (HasFatalFailure()) {
                            return;
                        }
                    }
                }
            }
        }
    }
}

/// Both sides of where rows get several blocks, of shared memory, of n.
TEST_F(FlatKnnCertified, EveryK) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Duplicates}) {
        for (int k :
             {1,
              2,
              100,
              220,
              231,
              250,
              1000,
              2031,
              2032,
              2033,
              2048,
              2049,
              3900,
              4999,
              5000,
              5001,
              7000}) {
            for (int64_t q : {2, 70}) {
                CertifiedCase c;
                c.n = 5000;
                c.q = q;
                c.k = k;
                c.d = 16;
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

/// The scan of repeated queries in as little scratch as there may be, for more
/// of them than have a place at once.
TEST_F(FlatKnnCertified, LittleScratch) {
    for (Hard kind : {Hard::Offset, Hard::Duplicates, Hard::Infinite}) {
        for (int64_t q : {1, 5, 300}) {
            for (size_t scratch : {kLeastScratch, size_t(8) << 20}) {
                CertifiedCase c;
                c.n = 70001;
                c.q = q;
                c.d = 12;
                c.k = 40;
                c.maxScratch = scratch;
                expectCanonical(c, kind);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FlatKnnCertified, FewVectors) {
    for (int64_t n : {1, 2, 9, 10, 11, 26, 27, 100}) {
        for (Hard kind : kHard) {
            CertifiedCase c;
            c.n = n;
            c.q = 30;
            expectCanonical(c, kind);
        }
    }
}

TEST_F(FlatKnnCertified, SameBitsInEveryBatch) {
    for (Hard kind : {Hard::Offset, Hard::Terrain, Hard::Clusters}) {
        for (Metric metric : kMetrics) {
            CertifiedCase c;
            c.metric = metric;
            c.n = 20001;
            c.q = 1000;
            c.d = 50;
            const auto vectors = makeHard(kind, c.n, c.d, 1);
            const auto queries = makeHard(kind, c.q, c.d, 2);
            const KnnResult whole = search(c, vectors, queries);
            check(c, vectors, queries, whole, 4);
            for (int64_t batch : {1, 2, 16, 17, 64}) {
                CertifiedCase part = c;
                part.q = batch;
                const std::vector<float> first(
                        queries.begin(), queries.begin() + batch * c.d);
                const KnnResult result = search(part, vectors, first);
                for (int64_t i = 0; i < batch * c.k; ++i) {
                    ASSERT_EQ(result.ids[i], whole.ids[i]) << batch;
                    ASSERT_TRUE(
                            sameBits(result.distances[i], whole.distances[i]))
                            << batch;
                }
            }
        }
    }
}

/// The proof holds for ordinary data, and not where float32 cannot tell.
TEST_F(FlatKnnCertified, CountsWhatIsRepeated) {
    CertifiedCase c;
    c.q = 100;
    c.d = 64;
    EXPECT_EQ(expectCanonical(c, Hard::Bytes).repeated, 0u);
    EXPECT_EQ(expectCanonical(c, Hard::Offset).repeated, 100u);
    // All vectors are candidates: nothing to prove.
    c.n = 20;
    EXPECT_EQ(expectCanonical(c, Hard::Offset).repeated, 0u);
}

TEST_F(FlatKnnCertified, SmallHardData) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Infinite}) {
        for (int k : {3, 300}) {
            for (int64_t q : {2, 6, 20}) {
                CertifiedCase c;
                c.n = 700;
                c.q = q;
                c.d = 9;
                c.k = k;
                c.metric = q == 6 ? Metric::InnerProduct : Metric::L2;
                c.idType = IdType::Int32;
                expectCanonical(c, kind);
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
