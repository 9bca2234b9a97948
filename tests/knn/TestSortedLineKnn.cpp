/// L2 and inner products of one dimension, by sorted numbers.

#include "kernels/knn/line/SortedLineKernels.h"
#include "tests/common/CapturedGraph.h"
#include "tests/knn/CertifiedHarness.h"
#include "tests/knn/LineNumbers.h"

namespace faiss_bits::test {
namespace {

const std::vector<Metric> kLineMetrics = {Metric::L2, Metric::InnerProduct};

class SortedLineKnn : public FlatKnnCertified {
   protected:
    static CertifiedCase of(Metric metric, int64_t n, int64_t q, int k) {
        return caseOf(Direct::SortedLine, metric, n, q, 1, k);
    }

    void expectLine(const CertifiedCase& c, Hard kind) {
        ASSERT_TRUE(planOf(c).sortedLine) << c.describe();
        EXPECT_EQ(expectCanonical(c, kind).repeated, 0u);
    }

    /// All queries are checked.
    void expectLine(
            const CertifiedCase& c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries) {
        check(c, vectors, queries, search(c, vectors, queries), c.q);
    }

    static std::vector<float> uniform(int64_t count, uint32_t seed) {
        std::mt19937 random(seed);
        std::vector<float> all(count);
        for (float& one : all) {
            one = float(random() % (1 << 24)) * 0x1p-24f;
        }
        return all;
    }
};

TEST_F(SortedLineKnn, HardData) {
    std::vector<Hard> kinds = kHard;
    kinds.push_back(Hard::Ends);
    for (Hard kind : kinds) {
        for (Metric metric : kLineMetrics) {
            for (int64_t n : {1, 2, 31, 33, 1000, 5000}) {
                for (int k : {1, 2, 31, 32, 33, 128, 129, 1024, 2048}) {
                    expectLine(of(metric, n, 21, k), kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Infinities and zeros of queries as well as of vectors.
TEST_F(SortedLineKnn, EndsOfTheLine) {
    for (Metric metric : kLineMetrics) {
        for (int64_t n : {5, 64, 65, 1000, 9000}) {
            for (int k : {1, 3, 33, 900, 2048}) {
                for (IdType type : {IdType::Int32, IdType::Int64}) {
                    CertifiedCase c = of(metric, n, 40, k);
                    c.idType = type;
                    expectLine(
                            c,
                            lineNumbers(n, uint32_t(n + k)),
                            lineNumbers(c.q, 3));
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Different numbers that are equally near: differences, squares or products
/// round to one. In any order of the vectors, so that the first of them are at
/// either end of the numbers.
TEST_F(SortedLineKnn, DifferentNumbersAtOneDistance) {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> queries = {
            0,
            -0.0f,
            0.5f,
            1e4f,
            -1e4f,
            1e6f,
            -1e6f,
            3e7f,
            3e9f,
            1e20f,
            -1e20f,
            1e-39f,
            -1e-44f,
            infinity,
            -infinity};
    for (float scale : {1.0f, 1e-30f, 1e-42f, 1e25f}) {
        for (int order : {0, 1, -1}) {
            std::vector<float> vectors = uniform(7000, 5);
            for (float& one : vectors) {
                one = (one - 0.25f) * scale;
            }
            if (order != 0) {
                std::sort(vectors.begin(), vectors.end());
            }
            if (order < 0) {
                std::reverse(vectors.begin(), vectors.end());
            }
            for (Metric metric : kLineMetrics) {
                for (int k : {1, 17, 32, 33, 128, 129, 2048}) {
                    const CertifiedCase c =
                            of(metric,
                               int64_t(vectors.size()),
                               int64_t(queries.size()),
                               k);
                    SCOPED_TRACE(testing::Message() << scale << " " << order);
                    expectLine(c, vectors, queries);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Copies on both sides of a query, as many as there is room for, and more.
TEST_F(SortedLineKnn, Copies) {
    for (Metric metric : kLineMetrics) {
        for (int k : {1, 5, 31, 32, 33, 128, 129, 700}) {
            const int64_t room = lineRoom(uint32_t(k));
            for (int64_t copies :
                 {room / 2 - 1, room / 2, room / 2 + 1, room, 3 * room}) {
                // Each of -1 and 1 `copies` times, with ids between each other.
                std::vector<float> vectors;
                for (int64_t i = 0; i < copies; ++i) {
                    vectors.push_back(i % 3 == 0 ? 1.0f : -1.0f);
                    vectors.push_back(i % 3 == 0 ? -1.0f : 1.0f);
                    if (i % 7 == 0) {
                        vectors.push_back(i % 2 == 0 ? 0.25f : -0.5f);
                    }
                }
                const std::vector<float> queries = {0, 1, -1, 3, -3, 0.375f};
                expectLine(
                        of(metric, int64_t(vectors.size()), 6, k),
                        vectors,
                        queries);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// One, and two, of the ties do not fit.
TEST_F(SortedLineKnn, RoomOfDifferentNumbers) {
    for (int k : {1, 32, 33, 500}) {
        const int64_t room = lineRoom(uint32_t(k));
        for (int64_t n = room - 1; n <= room + 2; ++n) {
            const std::vector<float> vectors = uniform(n, uint32_t(n));
            expectLine(
                    of(Metric::L2, n, 3, k), vectors, {1e10f, -1e10f, 1e20f});
        }
    }
}

/// Sorts of one tile and of several, and more vectors than threads.
TEST_F(SortedLineKnn, ManyVectors) {
    for (Metric metric : kLineMetrics) {
        for (int64_t n : {2047, 2049, 4097, 20000, 1100003}) {
            const CertifiedCase c = of(metric, n, 9, n < 5000 ? 2000 : 300);
            std::vector<float> vectors = uniform(n, 1);
            vectors[n / 2] = std::nanf("");
            expectLine(
                    c,
                    vectors,
                    {0, 1, -1, 0.5f, 0.123f, 1e-30f, -1e30f, 2, 1e5f});
        }
    }
}

TEST_F(SortedLineKnn, ManyQueries) {
    for (int k : {3, 200}) {
        expectLine(of(Metric::L2, 3000, 20001, k), Hard::Clusters);
        expectLine(of(Metric::InnerProduct, 3000, 20001, k), Hard::Mixed);
    }
}

TEST_F(SortedLineKnn, SixteenBits) {
    for (DataType type : {DataType::Float16, DataType::BFloat16}) {
        for (Metric metric : kLineMetrics) {
            for (bool areExact : {false, true}) {
                for (int k : {1, 40, 1000}) {
                    for (Hard kind : kHard) {
                        CertifiedCase c = of(metric, 9000, 30, k);
                        c.dataType = type;
                        c.exactQueries = areExact;
                        expectLine(c, kind);
                        if (HasFailure()) {
                            return;
                        }
                    }
                }
            }
        }
    }
}

/// As planned from the shape: dirty scratch, a stream, no handle, captured.
TEST_F(SortedLineKnn, Captured) {
    const TestStream stream;
    for (Metric metric : kLineMetrics) {
        KnnCase c;
        c.metric = metric;
        c.n = 40000;
        c.q = 3000;
        c.d = 1;
        c.k = 20;
        c.vectorsRowMajor = false;
        c.data = Vectors::Special;
        const KnnData data(c);
        FlatKnnProblem p = data.problem();
        const auto plan = planFlatKnn(p, kRoomyScratch);
        ASSERT_TRUE(plan.sortedLine) << c.describe();
        DeviceBuffer<float> distances(c.q * c.k, 0xA5);
        DeviceBuffer<uint8_t> ids(c.q * c.k * sizeof(int64_t), 0xA5);
        DeviceBuffer<uint8_t> scratch(plan.bytes, 0xFF);
        p.outDistances = distances.data();
        p.outIds = ids.data();
        CapturedGraph graph(stream, [&] {
            runFlatKnn(
                    plan, p, {scratch.data(), scratch.size()}, nullptr, stream);
        });
        graph.launch(2);
        EXPECT_TRUE(data.check(
                {distances.download(), unpackIds(c.idType, ids.download())}));
    }
}

TEST_F(SortedLineKnn, OthersGoOtherWays) {
    const CertifiedCase line = of(Metric::L2, 3000, 50, 40);
    EXPECT_TRUE(planOf(line).sortedLine);
    CertifiedCase c = line;
    c.mode = SearchMode::Plain;
    EXPECT_FALSE(planOf(c).sortedLine);
    c.mode = SearchMode::Fast;
    EXPECT_TRUE(planOf(c).sortedLine);
    for (Metric metric : {Metric::Cosine, Metric::L1, Metric::Linf}) {
        c = line;
        c.metric = metric;
        EXPECT_FALSE(planOf(c).sortedLine);
    }
    c = line;
    c.d = 2;
    EXPECT_FALSE(planOf(c).sortedLine);
    c = line;
    c.k = kMostLineK;
    EXPECT_TRUE(planOf(c).sortedLine);
    c.k = kMostLineK + 1;
    EXPECT_FALSE(planOf(c).sortedLine);
    c = line;
    c.limits.resize(50);
    EXPECT_FALSE(planOf(c).sortedLine);
    c = line;
    c.maxScratch = planOf(line).bytes;
    EXPECT_TRUE(planOf(c).sortedLine);
    --c.maxScratch;
    EXPECT_FALSE(planOf(c).sortedLine);
}

} // namespace
} // namespace faiss_bits::test
