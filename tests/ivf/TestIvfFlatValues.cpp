/// Values that are hard to order: ties across lists, NaN, infinities.

#include <limits>

#include "tests/ivf/IvfHarness.h"

namespace faiss_bits::test {
namespace {

class IvfFlatValues : public GpuTest {};

void expectExact(const IvfData& data, int nprobe, const std::vector<int>& ks) {
    const auto index = data.makeIndex();
    index->nprobe = nprobe;
    for (int k : ks) {
        data.expectExact(searchOnDevice(*index, data.queries, k), nprobe, k);
    }
}

std::vector<int64_t> shuffledIds(int64_t n) {
    std::vector<int64_t> ids(n);
    std::iota(ids.begin(), ids.end(), 0);
    std::mt19937 random(5);
    std::shuffle(ids.begin(), ids.end(), random);
    return ids;
}

TEST_F(IvfFlatValues, SmallEqualVectorsInAllLists) {
    // Centroids far from each other; vectors in between, so many of them as far
    // from a query as others of other lists.
    for (int64_t q : {2, 200}) {
        IvfCase c;
        c.n = 3000;
        c.d = 2;
        c.nlist = 12;
        c.q = q;
        auto vectors = makeVectors(c.n, c.d, 3, Fill::Integers);
        const auto queries = makeVectors(c.q, c.d, 4, Fill::Integers);
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            c.metric = metric;
            const IvfData data(c, vectors, queries, shuffledIds(c.n));
            expectExact(data, 7, {1, 2, 30, 500, 2500, 3500});
        }
    }
}

TEST_F(IvfFlatValues, SmallAllEqual) {
    IvfCase c;
    c.n = 2000;
    c.d = 6;
    c.nlist = 1;
    const std::vector<float> vectors(c.n * c.d, 0.25f);
    for (int64_t q : {1, 60}) {
        c.q = q;
        const IvfData data(
                c, vectors, makeVectors(c.q, c.d, 4), shuffledIds(c.n));
        expectExact(data, 1, {1, 10, 1999, 2000, 2001});
    }
}

TEST_F(IvfFlatValues, SmallNanAndInfinities) {
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (int64_t q : {3, 150}) {
            IvfCase c;
            c.metric = metric;
            c.n = 1500;
            c.d = 9;
            c.nlist = 8;
            c.q = q;
            auto vectors = makeVectors(c.n, c.d, 8);
            auto queries = makeVectors(c.q, c.d, 9);
            std::mt19937 random(1);
            for (int64_t i = 0; i < c.n / 4; ++i) {
                const float hard[] = {inf, -inf, nan, 3e38f, -3e38f, 0.0f};
                vectors[random() % vectors.size()] = hard[i % 6];
            }
            queries[1] = inf;
            queries[c.d] = nan; // its distances are NaN: no list, no result
            queries[2 * c.d + 3] = -3e38f;
            const IvfData data(c, vectors, queries, shuffledIds(c.n));
            expectExact(data, 8, {1, 20, 2000});
        }
    }
}

TEST_F(IvfFlatValues, SmallOffsetsAndSizes) {
    // Where products in float16 say little, or would leave the range of
    // float32.
    struct Scale {
        float size;
        float offset;
    };
    const Scale scales[] = {
            {1, 1e4f},
            {1e-3f, 100},
            {1e-20f, 0},
            {1e-30f, 1e-25f},
            {1e17f, 0},
            {1e18f, 1e18f},
            {1, -3e30f}};
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (const Scale& scale : scales) {
            for (bool interleaved : {true, false}) {
                IvfCase c;
                c.metric = metric;
                c.n = 4000;
                c.d = interleaved ? 21 : 20;
                c.nlist = 10;
                c.q = 120;
                c.interleaved = interleaved;
                const auto make = [&](int64_t count, uint32_t seed) {
                    auto values = makeVectors(count, c.d, seed);
                    for (float& value : values) {
                        value = scale.offset + scale.size * value;
                    }
                    return values;
                };
                SCOPED_TRACE(
                        testing::Message()
                        << "size " << scale.size << " offset " << scale.offset);
                const IvfData data(
                        c, make(c.n, 5), make(c.q, 6), shuffledIds(c.n));
                expectExact(data, 6, {1, 12});
            }
        }
    }
}

TEST_F(IvfFlatValues, SmallZeroHasNoSign) {
    IvfCase c;
    c.metric = faiss::METRIC_INNER_PRODUCT;
    c.n = 300;
    c.d = 8;
    c.nlist = 2;
    for (int64_t q : {1, 40}) {
        c.q = q;
        std::vector<float> vectors(c.n * c.d);
        for (size_t i = 0; i < vectors.size(); ++i) {
            vectors[i] = i / c.d % 2 ? -0.0f : 0.0f;
        }
        const IvfData data(
                c, vectors, makeVectors(c.q, c.d, 2), shuffledIds(c.n));
        expectExact(data, 2, {5, 300});
    }
}

} // namespace
} // namespace faiss_bits::test
