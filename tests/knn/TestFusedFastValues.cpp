/// Fast searches of hard values: ties, what is not finite, and what products
/// say nothing of.

#include "tests/knn/FusedFastHarness.h"

namespace faiss_bits::test {
namespace {

/// Equal distances of products fall to the lower id.
TEST_F(FusedFast, SmallTies) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        const CertifiedCase c = of(metric, 20000, 20, 24, 50);
        auto vectors = uniform(c.n, c.d, 1);
        for (int64_t v = 0; v < c.n; ++v) {
            // Each a hundred times, far apart.
            const int64_t from = v % 200;
            std::copy_n(
                    vectors.begin() + from * c.d,
                    c.d,
                    vectors.begin() + v * c.d);
        }
        const auto queries = uniform(c.q, c.d, 2);
        const Result result = search(c, vectors, queries);
        checkFast(c, vectors, queries, result);
        for (int64_t q = 0; q < c.q; ++q) {
            // All fifty are of one vector: the first of its hundred.
            const int64_t first = result.ids[q * c.k];
            EXPECT_LT(first, 200);
            for (int place = 0; place < c.k; ++place) {
                EXPECT_EQ(result.ids[q * c.k + place], first + 200 * place);
            }
        }
    }
}

TEST_F(FusedFast, SmallNotANumber) {
    for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
        const CertifiedCase c = of(metric, 20000, 20, 48, 10);
        auto vectors = uniform(c.n, c.d, 1);
        for (int64_t v = 7; v < c.n; v += 1000) {
            vectors[v * c.d + v % c.d] = std::nanf("");
        }
        auto queries = uniform(c.q, c.d, 2);
        queries[3 * c.d + 5] = std::nanf("");
        const Result result = search(c, vectors, queries);
        const float none = metric == Metric::L2
                ? std::numeric_limits<float>::max()
                : std::numeric_limits<float>::lowest();
        for (int place = 0; place < c.k; ++place) {
            EXPECT_EQ(result.ids[3 * c.k + place], -1);
            EXPECT_EQ(result.distances[3 * c.k + place], none);
        }
        // Of the first row and the last one.
        checkFast(c, vectors, queries, result, 2);
    }
}

/// Infinite components have canonical distances: by inner product they are
/// nearest.
TEST_F(FusedFast, SmallInfinite) {
    const CertifiedCase c = of(Metric::InnerProduct, 20000, 20, 48, 10);
    auto vectors = uniform(c.n, c.d, 1);
    vectors[777 * c.d + 3] = INFINITY;
    vectors[778 * c.d + 3] = -INFINITY;
    auto queries = uniform(c.q, c.d, 2);
    for (float& one : queries) {
        one += 0.01f;
    }
    const Result result = search(c, vectors, queries);
    for (int64_t q = 0; q < c.q; ++q) {
        EXPECT_EQ(result.ids[q * c.k], 777);
        EXPECT_EQ(result.distances[q * c.k], INFINITY);
        EXPECT_TRUE(std::isfinite(result.distances[q * c.k + 1]));
    }
}

/// Queries whose lists say too little are searched again, so that they have
/// canonical results; whatever the data, no place is empty.
TEST_F(FusedFast, HardData) {
    for (Hard kind : {Hard::Clusters, Hard::Duplicates, Hard::Huge}) {
        for (Metric metric : {Metric::L2, Metric::InnerProduct}) {
            const CertifiedCase c = of(metric, 20000, 30, 40, 10);
            const auto vectors = makeHard(kind, c.n, c.d, 1);
            const auto queries = makeHard(kind, c.q, c.d, 2);
            const Result result = search(c, vectors, queries);
            if (result.repeated == uint64_t(c.q)) {
                check(c, vectors, queries, result);
                continue;
            }
            std::vector<bool> in(c.n);
            for (int64_t q = 0; q < c.q; ++q) {
                std::fill(in.begin(), in.end(), false);
                for (int place = 0; place < c.k; ++place) {
                    const int64_t id = result.ids[q * c.k + place];
                    ASSERT_TRUE(id >= 0 && id < c.n && !in[id])
                            << c.describe() << " query " << q << ": " << id;
                    in[id] = true;
                }
            }
        }
    }
}

/// Vectors so long that products have no bound: distances are canonical. A list
/// has all that are allowed, so that no query is searched again.
TEST_F(FusedFast, SmallWithoutBoundInFullLists) {
    struct Sizes {
        Metric metric;
        int ofVectors; // powers of two that components are below
        int ofQueries;
    };
    constexpr Sizes kSizes[] = {
            {Metric::L2, 60, 60},
            {Metric::L2, 62, 62},           // longer than images have room for
            {Metric::L2, 68, 55},           // all distances infinite
            {Metric::InnerProduct, 60, 60}, // products above 2^120
            {Metric::InnerProduct, 61, 61},
            {Metric::InnerProduct, 68, 55}}; // components cut in the image
    for (const Sizes& sizes : kSizes) {
        for (bool byStrips : {false, true}) {
            CertifiedCase c =
                    of(sizes.metric, byStrips ? 640 : 20000, 20, 40, 10);
            c.allowedOf = byStrips ? 0 : 100;
            c.direct = byStrips ? Direct::Strips : Direct::Never;
            SCOPED_TRACE(
                    c.describe() + " 2^" + std::to_string(sizes.ofVectors) +
                    " 2^" + std::to_string(sizes.ofQueries));
            const bool byKeys = isByKeys(c);
            if (byStrips && !byKeys) {
                continue; // no such plan on other GPUs
            }
            auto vectors = uniform(c.n, c.d, 1);
            auto queries = uniform(c.q, c.d, 2);
            for (float& one : vectors) {
                one = std::ldexp(one, sizes.ofVectors);
            }
            for (float& one : queries) {
                one = std::ldexp(one, sizes.ofQueries);
            }
            const Result result = search(c, vectors, queries);
            check(c, vectors, queries, result);
            if (byKeys) {
                const int64_t listed = byStrips ? c.n : c.n / c.allowedOf;
                EXPECT_EQ(result.repeated, 0u);
                EXPECT_EQ(result.rescored, uint64_t(c.q * listed));
            }
            if (HasFailure()) {
                return;
            }
        }
    }
}

/// One vector among thousands: near ones have a bound, but what is in their
/// lists may be the far one, so that their distances are canonical too, and
/// prove the result.
TEST_F(FusedFast, SmallOneWithoutBound) {
    const CertifiedCase c = of(Metric::L2, 20000, 20, 40, 10);
    auto vectors = uniform(c.n, c.d, 1);
    auto queries = uniform(c.q, c.d, 2);
    for (float& one : vectors) {
        one = std::ldexp(one, 52);
    }
    for (float& one : queries) {
        one = std::ldexp(one, 52);
    }
    std::fill_n(vectors.begin() + 300 * c.d, c.d, 0x1p59f);
    const Result result = search(c, vectors, queries);
    check(c, vectors, queries, result);
    EXPECT_GE(result.rescored, uint64_t(c.q * c.k));
}

} // namespace
} // namespace faiss_bits::test
