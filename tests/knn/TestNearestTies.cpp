/// The one nearest of vectors many of which are as near: nearly all queries are
/// searched again, from the result that they have.

#include "tests/knn/NearestHarness.h"

namespace faiss_bits::test {
namespace {

class NearestTies : public NearestKnn {
   protected:
    static CertifiedCase of(Metric metric, int64_t n, int d) {
        CertifiedCase c = NearestKnn::of(metric, n, d);
        c.q = std::max<int64_t>(1500, c.q);
        return c;
    }

    /// Small integers from 0 on.
    static std::vector<float> integers(size_t count, int values, int seed) {
        std::mt19937 random(seed);
        std::vector<float> all(count);
        for (float& one : all) {
            one = float(random() % values);
        }
        return all;
    }
};

TEST_F(NearestTies, Integers) {
    unsigned long long repeated = 0;
    for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
        for (int64_t n : {700, 4099, 20000}) {
            for (int d : {9, 16, 17, 32}) {
                for (int values : {2, 4}) {
                    CertifiedCase c = of(metric, n, d);
                    // Cosines of few dimensions go other ways.
                    ASSERT_TRUE(
                            planOf(c).nearest ||
                            (metric == Metric::Cosine && d < 32))
                            << c.describe();
                    const auto vectors = integers(n * d, values, 1);
                    const auto queries = integers(c.q * d, values, 2);
                    const Result result = search(c, vectors, queries);
                    check(c, vectors, queries, result, 100);
                    repeated += result.repeated;
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
    EXPECT_GT(repeated, 10000u);
}

/// Some vectors and queries are no numbers, and some components infinite: rows
/// of which the first candidate is none have no limit.
TEST_F(NearestTies, NotFinite) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct, Metric::Cosine}) {
        for (float odd : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
            CertifiedCase c = of(metric, 5000, 20);
            auto vectors = integers(c.n * c.d, 3, 1);
            auto queries = integers(c.q * c.d, 3, 2);
            for (int64_t i = 0; i < c.n; i += 3) {
                vectors[i * c.d + i % c.d] = odd;
            }
            for (int64_t i = 0; i < c.q; i += 7) {
                queries[i * c.d + i % c.d] = odd;
            }
            check(c, vectors, queries, search(c, vectors, queries), 300);
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// Along a walk neighbours are nearer than 16 bits tell: the result that a row
/// has is a poor limit, which more vectors pass than a list has room for.
TEST_F(NearestTies, AlongAWalk) {
    unsigned long long repeated = 0;
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (float far : {0.f, 3000.f}) {
            CertifiedCase c = of(metric, 60000, 20);
            std::mt19937 random(1);
            std::normal_distribution<float> normal(0, 0.01f);
            std::vector<float> vectors(c.n * c.d);
            for (size_t i = 0; i < vectors.size(); ++i) {
                const float before = i < size_t(c.d) ? far : vectors[i - c.d];
                vectors[i] = before + normal(random);
            }
            std::vector<float> queries(c.q * c.d);
            for (int64_t i = 0; i < c.q; ++i) {
                const int64_t near = random() % c.n;
                for (int j = 0; j < c.d; ++j) {
                    queries[i * c.d + j] =
                            vectors[near * c.d + j] + normal(random);
                }
            }
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result, 60);
            repeated += result.repeated;
        }
    }
    EXPECT_GT(repeated, 300u); // of 6,000
}

/// Copies that differ in their last bits, all searched again; of the fewer
/// vectors by one step of a tile a block.
TEST_F(NearestTies, SmallAtOnce) {
    unsigned long long repeated = 0;
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        for (int64_t n : {10000, 60000}) {
            CertifiedCase c = of(metric, n, 200);
            c.q = 40;
            ASSERT_TRUE(planOf(c).nearest) << c.describe();
            std::mt19937 random(4);
            std::normal_distribution<float> normal;
            constexpr int64_t kDistinct = 50;
            std::vector<float> few(kDistinct * c.d);
            for (float& one : few) {
                one = normal(random);
            }
            const auto copies = [&](int64_t rows) {
                std::vector<float> all(rows * c.d);
                for (int64_t i = 0; i < rows * c.d; ++i) {
                    all[i] = few[i % (kDistinct * c.d)] *
                            (1 + float(random() % 9) * 0x1p-23f);
                }
                return all;
            };
            const auto vectors = copies(n);
            const auto queries = copies(c.q);
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result, 10);
            repeated += result.repeated;
        }
    }
    EXPECT_GT(repeated, 100u); // of 160
}

} // namespace
} // namespace faiss_bits::test
