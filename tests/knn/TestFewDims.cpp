/// Searches for the one nearest vector of few dimensions by strips of float32,
/// against canonical distances.

#include "kernels/knn/nearest/FewDimsKernels.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

constexpr Metric kMetrics[] = {Metric::L2, Metric::InnerProduct};

class FewDims : public FlatKnnCertified {
   protected:
    static CertifiedCase of(Metric metric, int64_t n, int64_t q, int d) {
        return caseOf(Direct::FewDims, metric, n, q, d, 1);
    }

    Result expectFewDims(const CertifiedCase& c, Hard kind) {
        EXPECT_TRUE(planOf(c).fewDims) << c.describe();
        const Result result = expectCanonical(c, kind);
        EXPECT_EQ(result.repeated, 0u);
        return result;
    }
};

TEST_F(FewDims, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kMetrics) {
            for (int d = 1; d <= 8; ++d) {
                expectFewDims(of(metric, 2005, 600, d), kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    for (int d : {2, 3, 8}) {
        expectFewDims(of(Metric::L2, 2005, 600, d), Hard::Ends);
    }
}

TEST_F(FewDims, BothSidesOfEveryEdge) {
    for (int64_t n : {1, 2, 7, 8, 9, 255, 256, 257, 511, 512, 513, 4097}) {
        for (int64_t q : {1, 31, 511, 512, 513, 1023, 1024, 1025, 1537}) {
            for (Metric metric : kMetrics) {
                CertifiedCase c = of(metric, n, q, int(1 + (n + q) % 8));
                c.idType = q % 2 ? IdType::Int32 : IdType::Int64;
                expectFewDims(c, q % 2 ? Hard::Bytes : Hard::Clusters);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FewDims, SixteenBits) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Mixed, Hard::Infinite}) {
        for (DataType type : {DataType::Float16, DataType::BFloat16}) {
            for (bool exactQueries : {false, true}) {
                for (Metric metric : kMetrics) {
                    CertifiedCase c =
                            of(metric, 1000, 700, exactQueries ? 3 : 8);
                    c.dataType = type;
                    c.exactQueries = exactQueries;
                    expectFewDims(c, kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Small numbers: the lowest of thousands that are as near, whatever the strip.
TEST_F(FewDims, Ties) {
    for (Metric metric : kMetrics) {
        for (int d : {1, 4, 5, 8}) {
            const CertifiedCase c = of(metric, 9000, 1100, d);
            std::mt19937 random(d);
            std::vector<float> vectors(c.n * c.d);
            std::vector<float> queries(c.q * c.d);
            for (std::vector<float>* rows : {&vectors, &queries}) {
                for (float& one : *rows) {
                    one = float(random() % 3) - (d == 5 ? 1.0f : 0.0f);
                }
            }
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result, 300);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Distances that round to the same float32 though they differ in float64.
TEST_F(FewDims, TiesOfRounding) {
    for (Metric metric : kMetrics) {
        const CertifiedCase c = of(metric, 3000, 600, 2);
        std::mt19937 random(9);
        std::vector<float> vectors(c.n * c.d);
        std::vector<float> queries(c.q * c.d);
        for (int64_t v = 0; v < c.n; ++v) {
            vectors[2 * v] = 1;
            vectors[2 * v + 1] = float(random() % 4096) * 0x1p-26f;
        }
        for (int64_t q = 0; q < c.q; ++q) {
            queries[2 * q] = 2;
            queries[2 * q + 1] = float(int(random() % 4096) - 2048) * 0x1p-20f;
        }
        check(c, vectors, queries, search(c, vectors, queries), 300);
    }
}

/// Places that no number takes are empty, and infinities are numbers.
TEST_F(FewDims, NoNumbers) {
    for (Metric metric : kMetrics) {
        for (float value : {NAN, INFINITY, -INFINITY, 3e38f, -3e38f}) {
            for (int64_t n : {1, 300, 600}) {
                for (int d : {1, 3, 8}) {
                    const CertifiedCase c = of(metric, n, 520, d);
                    const std::vector<float> vectors(n * d, value);
                    std::vector<float> queries(c.q * d, 1.0f);
                    for (int64_t q = 0; q < c.q; ++q) {
                        queries[q * d] = q % 5 == 0 ? 0.0f
                                : q % 5 == 1        ? INFINITY
                                : q % 5 == 2        ? NAN
                                : q % 5 == 3        ? -3e38f
                                                    : 1.0f;
                    }
                    const Result result = search(c, vectors, queries);
                    check(c, vectors, queries, result, 60);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// One vector that has no bound, or is far away, among others: in the first
/// place of a strip, which is its center, and in another.
TEST_F(FewDims, OneThatIsFar) {
    for (Metric metric : kMetrics) {
        for (float far : {NAN, INFINITY, 1e30f, 1e12f, -1e6f}) {
            for (int64_t at : {0, 256, 300, 511}) {
                const CertifiedCase c = of(metric, 700, 530, 4);
                std::vector<float> vectors =
                        makeHard(Hard::Clusters, c.n, 4, 1);
                const auto queries = makeHard(Hard::Clusters, c.q, 4, 2);
                vectors[4 * at + 1] = far;
                check(c, vectors, queries, search(c, vectors, queries), 60);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Few strips of ordinary data are met again.
TEST_F(FewDims, HardlyAnyIsMetAgain) {
    for (Metric metric : kMetrics) {
        for (int d : {2, 4, 8}) {
            const CertifiedCase c = of(metric, 20000, 2000, d);
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
            check(c, vectors, queries, result, 30);
            EXPECT_GE(result.rescored, 2000ull * (20000 % kFewDimsUnit));
            EXPECT_LE(result.rescored, 3 * 2000ull * kFewDimsUnit) << d;
        }
    }
}

/// Tiles of queries, the last of them fewer: the same bits.
TEST_F(FewDims, LittleScratch) {
    for (Metric metric : kMetrics) {
        CertifiedCase c = of(metric, 3000, 5001, 4);
        const auto vectors = makeHard(Hard::Clusters, c.n, c.d, 1);
        const auto queries = makeHard(Hard::Clusters, c.q, c.d, 2);
        const KnnResult all = search(c, vectors, queries);
        check(c, vectors, queries, all, 100);
        c.maxScratch = 80000;
        ASSERT_TRUE(planOf(c).fewDims);
        EXPECT_LT(planOf(c).fewDims->tileQueries, 1300);
        EXPECT_TRUE(search(c, vectors, queries) == all);
    }
}

/// Strips of two units.
TEST_F(FewDims, LongStrips) {
    const CertifiedCase c = of(Metric::L2, (1 << 20) + 300, 600, 2);
    ASSERT_EQ(planOf(c).fewDims->logUnits, 1u);
    expectFewDims(c, Hard::Bytes);
    expectFewDims(c, Hard::Clusters);
}

/// As planned from the shape: column-major arrays, dirty scratch, a stream.
TEST_F(FewDims, Layouts) {
    const TestStream stream;
    for (Metric metric : kMetrics) {
        for (bool rows : {true, false}) {
            KnnCase c;
            c.metric = metric;
            c.n = 66000;
            c.q = 1200;
            c.d = 3;
            c.k = 1;
            c.vectorsRowMajor = rows;
            c.queriesRowMajor = !rows;
            c.data = Vectors::Special;
            const KnnData data(c);
            FlatKnnProblem p = data.problem();
            p.device.singleToDouble = 2;
            const auto plan = planFlatKnn(p, kRoomyScratch);
            ASSERT_TRUE(plan.fewDims) << c.describe();
            for (int byte : {0x00, 0xFF}) {
                DeviceBuffer<float> distances(c.q, 0xA5);
                DeviceBuffer<uint8_t> ids(c.q * sizeof(int64_t), 0xA5);
                DeviceBuffer<uint8_t> scratch(plan.bytes, byte);
                p.outDistances = distances.data();
                p.outIds = ids.data();
                runFlatKnn(
                        plan,
                        p,
                        {scratch.data(), scratch.size()},
                        nullptr,
                        stream);
                BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
                EXPECT_TRUE(data.check(
                        {distances.download(),
                         unpackIds(c.idType, ids.download())}));
            }
        }
    }
}

TEST_F(FewDims, Small) {
    for (Metric metric : kMetrics) {
        for (int d : {1, 4, 5, 8}) {
            expectFewDims(of(metric, 600, 530, d), Hard::Bytes);
            expectFewDims(of(metric, 300, 1030, d), Hard::Infinite);
        }
    }
}

} // namespace
} // namespace faiss_bits::test
