/// Several nearest vectors of few dimensions: ties, rays, sizes, what is no
/// number, and how few vectors are scored.

#include "tests/knn/FewDimsTopHarness.h"

namespace faiss_bits::test {
namespace {

/// Small numbers: the lowest of thousands that are as near, whatever the strip.
TEST_F(FewDimsTop, Ties) {
    for (Metric metric : kFewDimsTopMetrics) {
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
    for (Metric metric : kFewDimsTopMetrics) {
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
    for (Metric metric : kFewDimsTopMetrics) {
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
    for (Metric metric : kFewDimsTopMetrics) {
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
    for (Metric metric : kFewDimsTopMetrics) {
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
    for (Metric metric : kFewDimsTopMetrics) {
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
    for (Metric metric : kFewDimsTopMetrics) {
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

} // namespace
} // namespace faiss_bits::test
