/// All pairs by products of digits that leave many in doubt, which are then
/// computed by units of these.

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "kernels/knn/all_pairs/digits/DigitSearch.h"
#include "tests/knn/CertifiedHarness.h"

namespace faiss_bits::test {
namespace {

class MarkedPairsKnn : public FlatKnnCertified {
   protected:
    std::string lack() const override {
        return hasDigitPairs(deviceTraits())
                ? ""
                : "products of digits need compute capability 9.0";
    }

    static CertifiedCase of(int64_t n, int64_t q, int d, int k) {
        return caseOf(Direct::Digits, Metric::L2, n, q, d, k);
    }

    /// As products of float64 find them, of every query, bit for bit.
    void expectAsFloat64(
            CertifiedCase c,
            const std::vector<float>& vectors,
            const std::vector<float>& queries) {
        ASSERT_TRUE(planOf(c).allPairs && planOf(c).allPairs->byDigits);
        const KnnResult byDigits = search(c, vectors, queries);
        check(c, vectors, queries, byDigits, 4);
        c.direct = Direct::AllPairs;
        ASSERT_TRUE(planOf(c).allPairs && !planOf(c).allPairs->byDigits);
        EXPECT_TRUE(search(c, vectors, queries) == byDigits) << c.describe();
    }
};

/// Rows of so many kinds, off by some units in the last place: digits leave the
/// pairs of a kind in doubt, but for that of the first vector, which is
/// subtracted.
std::vector<float> makeKinds(
        int64_t rows,
        int d,
        uint32_t kinds,
        uint32_t seed) {
    std::mt19937 shared(9);
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> unit(0.5f, 1.f);
    std::vector<float> centers(size_t(kinds) * d);
    for (float& one : centers) {
        one = unit(shared);
    }
    std::vector<float> values(rows * d);
    for (int64_t i = 0; i < rows; ++i) {
        const size_t kind = random() % kinds;
        for (int j = 0; j < d; ++j) {
            values[i * d + j] = centers[kind * d + j] +
                    float(int(random() % 17) - 8) * 0x1p-24f;
        }
    }
    return values;
}

/// By units of pairs in doubt; of few kinds these are most of a tile, which is
/// computed as a whole, of many a few pairs alone.
TEST_F(MarkedPairsKnn, KindsOfCopies) {
    for (const uint32_t kinds : {1u, 2u, 3u, 4u, 5u, 9u, 14u, 17u, 40u}) {
        for (const bool isFirstOther : {false, true}) {
            for (const int d : {31, 64, 215}) {
                const CertifiedCase c = of(700, 200, d, 60);
                auto vectors = makeKinds(c.n, d, kinds, 1);
                const auto queries = makeKinds(c.q, d, kinds, 2);
                if (isFirstOther) {
                    std::fill_n(vectors.begin(), d, 0.0f);
                }
                SCOPED_TRACE(
                        std::to_string(kinds) + " kinds, the first " +
                        (isFirstOther ? "another" : "one of them"));
                expectAsFloat64(c, vectors, queries);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Kinds whose rows stand together, so that tiles have one or two of them, and
/// tiles that are not full.
TEST_F(MarkedPairsKnn, KindsOfEverySize) {
    constexpr int d = 100;
    for (const int64_t n : {63, 64, 65, 130, 200}) {
        for (const int64_t q : {17, 64, 65, 129}) {
            for (const uint32_t kinds : {3u, 6u}) {
                auto vectors = makeKinds(n, d, kinds, 3);
                const auto queries = makeKinds(q, d, kinds, 4);
                for (int64_t i = 0; i < n / 3; ++i) {
                    std::copy_n(queries.begin(), d, vectors.begin() + i * d);
                    vectors[i * d + i % d] += 0x1p-22f;
                }
                expectAsFloat64(of(n, q, d, 20), vectors, queries);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
}

/// Rows that are not finite among them: a NaN is no mark that matters.
TEST_F(MarkedPairsKnn, KindsWithOddRows) {
    const CertifiedCase c = of(500, 150, 90, 70);
    for (const float odd : {HUGE_VALF, -HUGE_VALF, NAN, 1e30f, -1e-30f}) {
        auto vectors = makeKinds(c.n, c.d, 4, 1);
        auto queries = makeKinds(c.q, c.d, 4, 2);
        for (int i = 5; i < 60; i += 7) {
            vectors[i * c.d + i % c.d] = odd;
            queries[(i + 3) * c.d + 2 * i % c.d] = odd;
        }
        expectAsFloat64(c, vectors, queries);
        if (HasFailure()) {
            return;
        }
    }
}

/// Rows along a line: what is in doubt are no kinds.
TEST_F(MarkedPairsKnn, CopiesAlongALine) {
    const CertifiedCase c = of(600, 200, 120, 50);
    for (const float length : {1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f}) {
        const auto make = [&](int64_t rows, uint32_t seed) {
            auto values = makeKinds(rows, c.d, 1, seed);
            for (int64_t i = 0; i < rows; ++i) {
                const float at = length * float(seed * i % rows) / float(rows);
                for (int j = 0; j < c.d; ++j) {
                    values[i * c.d + j] += at;
                }
            }
            return values;
        };
        auto vectors = make(c.n, 7);
        std::fill_n(vectors.begin(), c.d, 0.0f);
        expectAsFloat64(c, vectors, make(c.q, 11));
        if (HasFailure()) {
            return;
        }
    }
}

/// For tools that watch each access: tiles that are not full, whose units are
/// few, some, and most of the tile.
TEST_F(MarkedPairsKnn, SmallOfFewKinds) {
    for (const uint32_t kinds : {1u, 4u, 40u}) {
        const CertifiedCase c = of(130, 70, 33, 20);
        expectAsFloat64(
                c,
                makeKinds(c.n, c.d, kinds, 1),
                makeKinds(c.q, c.d, kinds, 2));
    }
}

} // namespace
} // namespace faiss_bits::test
