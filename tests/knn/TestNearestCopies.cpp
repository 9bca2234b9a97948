/// The one nearest of vectors that are there several times, or nearly.

#include "kernels/knn/fused/tensor/NearestTiles.h"
#include "tests/knn/NearestHarness.h"

namespace faiss_bits::test {
namespace {

constexpr Metric kProducts[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

/// Each vector some eight times, in any order, and queries among them: strips
/// of tiles that let copies go are met whole. Where all vectors are copies, too
/// many do, and all is searched again.
TEST_F(NearestKnn, CopiesOfLongVectors) {
    for (Metric metric : kProducts) {
        for (int64_t distinct : {225, 1}) {
            CertifiedCase c = of(metric, 1797, 300);
            c.q = 2100;
            std::mt19937 random(11);
            std::normal_distribution<float> normal;
            std::vector<float> some(distinct * c.d);
            for (float& one : some) {
                one = normal(random);
            }
            std::vector<float> vectors;
            std::vector<float> queries;
            const auto draw = [&](int64_t count, std::vector<float>& rows) {
                for (int64_t i = 0; i < count; ++i) {
                    const int64_t from = int64_t(random() % distinct) * c.d;
                    rows.insert(
                            rows.end(),
                            some.begin() + from,
                            some.begin() + from + c.d);
                }
            };
            draw(c.n, vectors);
            draw(c.q, queries);
            ASSERT_TRUE(planOf(c).nearest) << c.describe();
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result, 300);
            if (nearestTileOf(c.n, c.d, TensorScanKernel::Auto, traitsOf(c))) {
                if (distinct > 1) {
                    EXPECT_LE(result.repeated, uint64_t(c.q / 100));
                } else {
                    EXPECT_EQ(result.repeated, uint64_t(c.q));
                }
            }
        }
    }
}

/// A strip keeps two fours, and of a tile one. Of twins that lie together none
/// is searched again: a block computes what few of its rows want.
TEST_F(NearestKnn, SmallTwins) {
    constexpr int kTwins = 24;
    for (Metric metric : kProducts) {
        for (int64_t n : {256, 257, 1024, 1025}) {
            CertifiedCase c = of(metric, n, 32);
            c.q = 3001;
            std::mt19937 random(7);
            std::normal_distribution<float> normal;
            std::vector<float> vectors(c.n * c.d);
            std::vector<float> queries(c.q * c.d);
            for (std::vector<float>* rows : {&vectors, &queries}) {
                for (float& one : *rows) {
                    one = normal(random);
                }
            }
            for (int64_t v = 0; v < 2 * kTwins * c.d; ++v) {
                vectors[v + kTwins * c.d] =
                        vectors[v % (kTwins * c.d)] * (1 + v % 5 * 0x1p-22f);
            }
            // Near them one query in 97.
            for (int64_t q = 0; q < c.q; q += 97) {
                const int64_t v = q % kTwins;
                for (int i = 0; i < c.d; ++i) {
                    queries[q * c.d + i] = vectors[v * c.d + i] + 0.01f;
                }
            }
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result, c.q);
            if (HasFatalFailure()) {
                return;
            }
            if (n == 256) { // of more, one row of a block
                EXPECT_EQ(result.repeated, 0u) << c.describe();
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
