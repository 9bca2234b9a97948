/// The one nearest of vectors that are there several times, or nearly.

#include "kernels/knn/fused/tensor/NearestTiles.h"
#include "tests/knn/NearestHarness.h"

namespace faiss_bits::test {
namespace {

constexpr Metric kProducts[] = {
        Metric::L2,
        Metric::InnerProduct,
        Metric::Cosine};

class NearestCopies : public NearestKnn {
   protected:
    void copiesOfLong(
            Metric metric,
            int64_t n,
            int d,
            int64_t q,
            int64_t distinct) {
        CertifiedCase c = of(metric, n, d);
        c.q = q;
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
        check(c,
              vectors,
              queries,
              result,
              std::min<int64_t>(300, (1 << 20) / n));
        if (nearestTileOf(c.q, c.n, c.d, TensorScanKernel::Auto, traitsOf(c))) {
            if (distinct > 1) {
                EXPECT_LE(result.repeated, uint64_t(c.q / 100));
            } else {
                // Of cosines that are all 1 the first vectors are the result.
                const bool areFirst = c.metric == Metric::Cosine;
                EXPECT_EQ(result.repeated, areFirst ? 0 : uint64_t(c.q));
            }
        }
    }
};

/// Each vector some eight times, in any order, and queries among them: strips
/// of tiles that let copies go are met whole. Where all vectors are copies, too
/// many do, and all is searched again. A row has a warp or eight lanes: of many
/// rows, and no more strips than these have bits for.
TEST_F(NearestCopies, CopiesOfLongVectors) {
    struct Size {
        int64_t n;
        int64_t q;
    };
    const auto sizes = {
            Size{1797, 255},
            Size{1797, 256},
            Size{1797, 4096},
            Size{1797, 4097},
            Size{16384, 4100},
            Size{16385, 4100},
            Size{27000, 17},
            Size{27000, 100}};
    for (Metric metric : kProducts) {
        for (const Size& size : sizes) {
            for (int64_t distinct : {size.n / 8, int64_t(1)}) {
                copiesOfLong(metric, size.n, 300, size.q, distinct);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(NearestCopies, SmallOfEachTile) {
    for (Metric metric : kProducts) {
        for (int d : {193, 256, 257}) {
            copiesOfLong(metric, 1100, d, 400, 137);
            copiesOfLong(metric, 400, d, 4100, 50);
        }
    }
}

/// A strip keeps two fours, and of a tile one. Of twins that lie together none
/// is searched again: a block computes what few of its rows want.
TEST_F(NearestCopies, SmallTwins) {
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
