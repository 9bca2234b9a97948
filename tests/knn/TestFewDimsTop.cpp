/// Searches for several nearest vectors of few dimensions by short strips of
/// float32, and for the one nearest by cosine, against canonical distances.

#include <limits>
#include <random>

#include "kernels/knn/nearest/FewDimsTopKernels.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

constexpr Metric kMetrics[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

class FewDimsTop : public FlatKnnCertified {
   protected:
    static CertifiedCase of(Metric metric, int64_t n, int64_t q, int d, int k) {
        return caseOf(Direct::FewDimsTop, metric, n, q, d, k);
    }

    Result expectTop(const CertifiedCase& c, Hard kind) {
        EXPECT_TRUE(planOf(c).fewDimsTop) << c.describe();
        const Result result = expectCanonical(c, kind);
        EXPECT_EQ(result.repeated, 0u);
        return result;
    }

    /// Vectors and queries of one drawing each.
    template <class Draw>
    Result expectDrawn(const CertifiedCase& c, Draw draw, int64_t most = 100) {
        std::vector<float> vectors(c.n * c.d);
        std::vector<float> queries(c.q * c.d);
        for (std::vector<float>* rows : {&vectors, &queries}) {
            for (float& one : *rows) {
                one = draw();
            }
        }
        const Result result = search(c, vectors, queries);
        check(c, vectors, queries, result, most);
        return result;
    }
};

TEST_F(FewDimsTop, HardData) {
    for (Hard kind : kHard) {
        for (Metric metric : kMetrics) {
            for (int d = 1; d <= 16; ++d) {
                expectTop(of(metric, 2005, 400, d, 1 + (7 * d) % 16), kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    for (int d : {2, 3, 8, 13}) {
        expectTop(of(Metric::L2, 2005, 600, d, 9), Hard::Ends);
    }
}

TEST_F(FewDimsTop, BothSidesOfEveryEdge) {
    int round = 0;
    for (int64_t n :
         {1, 2, 15, 16, 17, 31, 32, 33, 127, 128, 129, 2047, 2048, 2049}) {
        for (int64_t q : {1, 7, 8, 9, 127, 128, 129, 511, 512, 513}) {
            for (Metric metric : kMetrics) {
                CertifiedCase c =
                        of(metric, n, q, 1 + round % 16, 1 + round % 13);
                ++round;
                c.idType = q % 2 ? IdType::Int32 : IdType::Int64;
                expectTop(c, q % 2 ? Hard::Bytes : Hard::Clusters);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Strips of 32, 64 and 128 vectors, and more than 512 of them.
TEST_F(FewDimsTop, LengthOfStrips) {
    const auto logStripOf = [](const CertifiedCase& c) {
        return planOf(c).fewDimsTop->logStrip;
    };
    for (int64_t n : {8192, 8193, 16384, 16385, 32769, 65537, 131072}) {
        for (Metric metric : kMetrics) {
            const CertifiedCase c = of(metric, n, 300, 4, 16);
            EXPECT_EQ(logStripOf(c), n <= 8192 ? 5u : n <= 16384 ? 6u : 7u);
            expectTop(c, Hard::Clusters);
            expectTop(of(metric, n, 300, 3, 2), Hard::Offset);
        }
    }
    EXPECT_FALSE(planOf(of(Metric::L2, 131073, 300, 4, 2)).fewDimsTop);
}

/// More than 16 places, whose limit is of other steps: lists of four rows.
TEST_F(FewDimsTop, LongLists) {
    constexpr int kPlaces[] = {17, 31, 32, 33, 63, 64, 65, 96, 97, 127, 128};
    for (Hard kind : kHard) {
        for (Metric metric : kMetrics) {
            for (int d = 1; d <= 4; ++d) {
                const int k = kPlaces[(3 * d + int(kind)) % 11];
                expectTop(of(metric, 9005, 300, d, k), kind);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    int round = 0;
    for (int64_t n : {1, 17, 128, 129, 2047, 4096, 4097, 16385}) {
        for (int64_t q : {1, 9, 511, 513}) {
            for (Metric metric : kMetrics) {
                const int k = kPlaces[round % 11];
                expectTop(
                        of(metric, n, q, 1 + round % 4, k),
                        q % 2 ? Hard::Bytes : Hard::Clusters);
                ++round;
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    EXPECT_FALSE(planOf(of(Metric::L2, 9005, 300, 5, 17)).fewDimsTop);
    EXPECT_FALSE(planOf(of(Metric::L2, 9005, 300, 4, 129)).fewDimsTop);
}

/// Strips of every length, and more than the 512 groups.
TEST_F(FewDimsTop, StripsOfLongLists) {
    for (int64_t n : {32768, 32769, 65536, 65537, 131072}) {
        for (Metric metric : kMetrics) {
            const CertifiedCase c = of(metric, n, 300, 2, 128);
            EXPECT_EQ(
                    planOf(c).fewDimsTop->logStrip,
                    n <= 32768           ? 5u
                            : n <= 65536 ? 6u
                                         : 7u);
            expectTop(c, Hard::Clusters);
            expectTop(of(metric, n, 300, 3, 40), Hard::Offset);
        }
    }
}

TEST_F(FewDimsTop, SixteenBits) {
    for (Hard kind : {Hard::Offset, Hard::Bytes, Hard::Mixed, Hard::Infinite}) {
        for (DataType type : {DataType::Float16, DataType::BFloat16}) {
            for (bool exactQueries : {false, true}) {
                for (Metric metric : kMetrics) {
                    CertifiedCase c =
                            of(metric, 1000, 700, exactQueries ? 3 : 8, 5);
                    c.dataType = type;
                    c.exactQueries = exactQueries;
                    expectTop(c, kind);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Small numbers: the lowest of thousands that are as near, whatever the strip.
TEST_F(FewDimsTop, Ties) {
    for (Metric metric : kMetrics) {
        for (int d : {2, 4, 5, 8}) {
            for (int k : {1, 7, 16, 100}) {
                if (k > mostFewDimsTop(d)) {
                    continue;
                }
                std::mt19937 random(d);
                expectDrawn(of(metric, 9000, 300, d, k), [&] {
                    return float(random() % 3) - (d == 5 ? 1.0f : 0.0f);
                });
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(FewDimsTop, AllEqual) {
    for (Metric metric : kMetrics) {
        for (float value : {0.0f, 1.0f, -3.5f, 1e-30f, 1e18f}) {
            for (int k : {1, 16, 128}) {
                expectDrawn(
                        of(metric, 5000, 60, 4, k), [&] { return value; }, 20);
            }
        }
    }
}

/// Vectors along rays: their cosines are the same but for float64, and those of
/// rays close to each other but for the last bits of float32.
TEST_F(FewDimsTop, CosinesOfRays) {
    for (float apart : {0.0f, 0x1p-24f, 0x1p-20f, 0x1p-12f}) {
        for (int k : {1, 2, 16, 70}) {
            std::mt19937 random(7);
            const CertifiedCase c = of(Metric::Cosine, 5000, 200, 3, k);
            std::vector<float> vectors(c.n * c.d);
            std::vector<float> queries(c.q * c.d);
            for (std::vector<float>* rows : {&vectors, &queries}) {
                for (size_t i = 0; i < rows->size(); i += c.d) {
                    const float length = float(1 + random() % 1000);
                    (*rows)[i] = length;
                    (*rows)[i + 1] = length * apart * float(random() % 8);
                    (*rows)[i + 2] = length * 0.5f;
                }
            }
            check(c, vectors, queries, search(c, vectors, queries), 100);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Lengths of every size, so that their squares are no float32.
TEST_F(FewDimsTop, CosinesOfEverySize) {
    std::mt19937 random(8);
    for (int spread : {1, 60, 250}) {
        for (int d : {2, 5, 8}) {
            expectDrawn(of(Metric::Cosine, 4000, 300, d, 6), [&] {
                const float size = float(1 + random() % 0xFFFFFF) * 0x1p-24f;
                const int power = int(random() % spread) - spread / 2;
                return std::ldexp(random() % 2 ? size : -size, power);
            });
        }
    }
}

/// Places that no number takes are empty, and infinities are numbers.
TEST_F(FewDimsTop, NoNumbers) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    constexpr float kInf = std::numeric_limits<float>::infinity();
    for (Metric metric : kMetrics) {
        for (float value : {kNan, kInf, -kInf, 3e38f, -3e38f}) {
            for (int64_t n : {1, 300, 600}) {
                for (int d : {2, 3, 8}) {
                    const int k = int(n % 7) + (d == 3 ? 20 : 2);
                    const CertifiedCase c = of(metric, n, 520, d, k);
                    const std::vector<float> vectors(n * d, value);
                    std::vector<float> queries(c.q * d, 1.0f);
                    for (int64_t q = 0; q < c.q; ++q) {
                        queries[q * d] = q % 5 == 0 ? 0.0f
                                : q % 5 == 1        ? kInf
                                : q % 5 == 2        ? kNan
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
/// place of a unit, which is its center, and in another; and queries of zero.
TEST_F(FewDimsTop, OneThatIsFar) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    constexpr float kInf = std::numeric_limits<float>::infinity();
    for (Metric metric : kMetrics) {
        for (float far : {kNan, kInf, 1e30f, 1e12f, -1e6f}) {
            for (int64_t at : {0, 128, 300, 511}) {
                const CertifiedCase c = of(metric, 700, 530, 4, 5);
                std::vector<float> vectors =
                        makeHard(Hard::Clusters, c.n, 4, 1);
                auto queries = makeHard(Hard::Clusters, c.q, 4, 2);
                vectors[4 * at + 1] = far;
                std::fill_n(queries.begin() + 4 * 100, 4 * 20, 0.0f);
                check(c, vectors, queries, search(c, vectors, queries), 60);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Ordinary data have few canonical distances computed: k, and as many again
/// where strips have several of the nearest.
TEST_F(FewDimsTop, FewAreScored) {
    for (Metric metric : kMetrics) {
        for (int d : {2, 4, 8}) {
            for (int k : {2, 5, 16, 100}) {
                if (k > mostFewDimsTop(d)) {
                    continue;
                }
                std::mt19937 random(3);
                std::normal_distribution<float> normal;
                const CertifiedCase c =
                        of(metric, k > 16 ? 20000 : 8000, 1000, d, k);
                const Result result = expectDrawn(
                        c, [&] { return normal(random); }, 30);
                EXPECT_GE(result.rescored, uint64_t(1000 * k));
                EXPECT_LE(result.rescored, uint64_t(1000 * (2 * k + 8)))
                        << c.describe();
            }
        }
    }
}

/// By similarities all vectors are as near to zeros: 32 are enough.
TEST_F(FewDimsTop, QueriesOfZeros) {
    for (Metric metric : kMetrics) {
        for (int d : {2, 4, 8}) {
            const CertifiedCase c = of(metric, 3000, 70, d, 5);
            const std::vector<float> vectors =
                    makeHard(Hard::Clusters, c.n, d, 1);
            const std::vector<float> queries(c.q * d, 0.0f);
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result, 70);
            if (metric != Metric::L2) {
                EXPECT_LE(result.rescored, uint64_t(32 * c.q)) << c.describe();
            }
        }
    }
}

/// Sorted along a line, so that few strips have all of the nearest.
TEST_F(FewDimsTop, Sorted) {
    for (Metric metric : kMetrics) {
        for (bool ascending : {true, false}) {
            const CertifiedCase c =
                    of(metric, 20000, 400, 3, ascending ? 16 : 90);
            std::vector<float> vectors(c.n * c.d);
            for (int64_t v = 0; v < c.n; ++v) {
                const float at = float(ascending ? v : c.n - v) / 1000;
                vectors[3 * v] = std::cos(at);
                vectors[3 * v + 1] = std::sin(at);
                vectors[3 * v + 2] = at;
            }
            std::vector<float> queries(
                    vectors.begin() + 3 * 9000,
                    vectors.begin() + 3 * (9000 + c.q));
            check(c, vectors, queries, search(c, vectors, queries), 100);
        }
    }
}

/// Tiles of queries, the last of them fewer: the same bits.
TEST_F(FewDimsTop, LittleScratch) {
    for (Metric metric : kMetrics) {
        CertifiedCase c = of(metric, 3000, 5001, 4, 7);
        const auto vectors = makeHard(Hard::Clusters, c.n, c.d, 1);
        const auto queries = makeHard(Hard::Clusters, c.q, c.d, 2);
        const KnnResult all = search(c, vectors, queries);
        check(c, vectors, queries, all, 100);
        c.maxScratch = 800000;
        ASSERT_TRUE(planOf(c).fewDimsTop);
        EXPECT_LT(planOf(c).fewDimsTop->tileQueries, 1700);
        EXPECT_TRUE(search(c, vectors, queries) == all);
    }
}

/// As planned from the shape: column-major arrays, dirty scratch, a stream.
TEST_F(FewDimsTop, Layouts) {
    const TestStream stream;
    for (Metric metric : kMetrics) {
        for (bool rows : {true, false}) {
            KnnCase c;
            c.metric = metric;
            c.n = 2049;
            c.q = 9141;
            c.d = 4;
            c.k = 5;
            c.vectorsRowMajor = rows;
            c.queriesRowMajor = !rows;
            c.data = Vectors::Special;
            const KnnData data(c);
            FlatKnnProblem p = data.problem();
            p.device.singleToDouble = 2;
            const auto plan = planFlatKnn(p, kRoomyScratch);
            ASSERT_TRUE(plan.fewDimsTop) << c.describe();
            for (int byte : {0x00, 0xFF}) {
                DeviceBuffer<float> distances(c.q * c.k, 0xA5);
                DeviceBuffer<uint8_t> ids(c.q * c.k * sizeof(int64_t), 0xA5);
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

TEST_F(FewDimsTop, Small) {
    for (Metric metric : kMetrics) {
        for (int d : {1, 4, 5, 8, 11, 16}) {
            expectTop(of(metric, 600, 530, d, 5), Hard::Bytes);
            expectTop(of(metric, 300, 130, d, 16), Hard::Infinite);
            if (d <= 4) {
                expectTop(of(metric, 4100, 70, d, 65), Hard::Clusters);
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
