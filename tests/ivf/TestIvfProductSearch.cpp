/// Searches of GpuIndexBitsIVFPQ against float64 distances of the decoded
/// vectors.

#include "tests/ivf/ProductHarness.h"

namespace faiss_bits::test {
namespace {

class IvfProductSearch : public GpuTest {};

/// Few queries, and so many that they meet in lists.
void expectExactBothWays(
        IvfCase c,
        const ProductShape& shape,
        const std::vector<int>& ks,
        uint32_t codes = 256) {
    SCOPED_TRACE(testing::Message() << shape);
    for (int64_t q : {3, 150}) {
        c.q = q;
        const ProductData data = makeProduct(c, shape, codes);
        data.expectExact(std::min(4, c.nlist), ks);
        if (testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

TEST_F(IvfProductSearch, SmallMetricsAndLayouts) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (bool interleaved : {true, false}) {
            IvfCase c;
            c.metric = metric;
            c.interleaved = interleaved;
            expectExactBothWays(c, {24, 8, 8}, {1, 10, 100});
        }
    }
}

TEST_F(IvfProductSearch, SmallBitsAndParts) {
    const int shapes[][2] = {
            {1, 1},
            {2, 1},
            {7, 7},
            {7, 1},
            {33, 11},
            {33, 33},
            {100, 20},
            {100, 5},
            {96, 48},
            {128, 16},
            {128, 4},
            {1030, 10}};
    for (const auto& [dims, parts] : shapes) {
        for (int bits : {4, 5, 6, 8}) {
            IvfCase c;
            c.n = 400;
            c.metric =
                    bits % 4 ? faiss::METRIC_INNER_PRODUCT : faiss::METRIC_L2;
            c.seed = uint32_t(dims + bits);
            expectExactBothWays(c, {dims, parts, bits}, {12});
        }
    }
}

TEST_F(IvfProductSearch, SmallPartsInRows) {
    for (int parts : {1, 2, 3, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48}) {
        IvfCase c;
        c.n = 400;
        c.interleaved = false;
        c.seed = uint32_t(parts);
        expectExactBothWays(c, {parts * (1 + parts % 3), parts, 8}, {12});
    }
}

TEST_F(IvfProductSearch, SmallTablesThatFaissHasInFloat16Alone) {
    for (int parts : {56, 64, 96}) {
        for (bool interleaved : {false, true}) {
            IvfCase c;
            c.n = 400;
            c.interleaved = interleaved;
            const ProductData data = makeProduct(c, {2 * parts, parts, 8});
            auto config = data.config();
            EXPECT_TRUE(faissThrowsNaming(
                    [&] {
                        GpuIndexBitsIVFPQ index(
                                sharedResources(), data.coded.get(), config);
                    },
                    "subQuantizers",
                    std::to_string(parts).c_str()));
            config.useFloat16LookupTables = true;
            GpuIndexBitsIVFPQ index(
                    sharedResources(), data.coded.get(), config);
            index.nprobe = 4;
            data.oracle.expectExact(
                    searchOnDevice(index, data.oracle.queries, 12), 4, 12);
        }
    }
}

TEST_F(IvfProductSearch, SmallFaissOptionsChangeNoBit) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        IvfCase c;
        c.metric = metric;
        c.interleaved = false;
        const ProductData data = makeProduct(c, {24, 8, 8});
        for (int options = 1; options < 8; ++options) {
            auto config = data.config();
            config.useFloat16LookupTables = options & 1;
            config.usePrecomputedTables = options & 2;
            config.useMMCodeDistance = options & 4;
            GpuIndexBitsIVFPQ index(
                    sharedResources(), data.coded.get(), config);
            index.nprobe = 4;
            data.oracle.expectExact(
                    searchOnDevice(index, data.oracle.queries, 12), 4, 12);
        }
    }
}

TEST_F(IvfProductSearch, SmallIdsOfAllKinds) {
    for (auto indices :
         {faiss::gpu::INDICES_64_BIT,
          faiss::gpu::INDICES_32_BIT,
          faiss::gpu::INDICES_CPU,
          faiss::gpu::INDICES_IVF}) {
        IvfCase c;
        c.indices = indices;
        expectExactBothWays(c, {6, 3, 5}, {1, 30, 1200});
    }
}

TEST_F(IvfProductSearch, SmallEqualCodes) {
    // Few codes: many vectors are the same, and others as far.
    for (int bits : {4, 8}) {
        for (bool interleaved : {true, false}) {
            IvfCase c;
            c.n = 2500;
            c.fill = Fill::Integers;
            c.interleaved = interleaved || bits == 4;
            expectExactBothWays(c, {4, 2, bits}, {1, 2, 30, 500, 3000}, 3);
        }
    }
}

TEST_F(IvfProductSearch, SmallNumbersOfListsAndVectors) {
    for (int nlist : {1, 2, 33}) {
        for (int64_t n : {0, 1, 31, 33, 257, 3000}) {
            IvfCase c;
            c.n = n;
            c.nlist = nlist;
            c.seed = uint32_t(n + nlist);
            expectExactBothWays(c, {6, 3, nlist == 2 ? 6 : 8}, {7});
        }
    }
}

TEST_F(IvfProductSearch, SmallNanAndInfinities) {
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (int64_t q : {4, 150}) {
            IvfCase c;
            c.metric = metric;
            c.q = q;
            ProductData data = makeProduct(c, {9, 3, 5});
            auto& codebook = data.coded->pq.centroids;
            const float hard[] = {inf, -inf, nan, 3e38f, -3e38f, -0.0f};
            std::mt19937 random(1);
            for (int i = 0; i < 40; ++i) {
                codebook[random() % codebook.size()] = hard[i % 6];
            }
            data.decode();
            auto& queries = data.oracle.queries;
            queries[1] = inf;
            queries[data.c.d] = nan;
            queries[2 * data.c.d + 3] = -3e38f;
            data.expectExact(c.nlist, {1, 20, 1500});
        }
    }
}

TEST_F(IvfProductSearch, SmallRandomShapes) {
    std::mt19937 random(22);
    const auto draw = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };
    for (int i = 0; i < 40; ++i) {
        IvfCase c;
        c.metric = draw(0, 1) ? faiss::METRIC_L2 : faiss::METRIC_INNER_PRODUCT;
        c.n = draw(0, 2500);
        c.nlist = draw(1, 60);
        c.q = draw(1, 400);
        c.seed = uint32_t(i);
        const int parts = draw(1, 12);
        const int bits[] = {4, 5, 6, 8};
        const ProductShape shape = {parts * draw(1, 9), parts, bits[i % 4]};
        SCOPED_TRACE(testing::Message() << shape);
        const int nprobe = draw(1, c.nlist + 3);
        const int k = draw(0, 3) ? draw(1, 40) : draw(1, 3000);
        makeProduct(c, shape).expectExact(nprobe, {k});
    }
}

TEST_F(IvfProductSearch, LongListsAndManyProbes) {
    IvfCase c;
    c.n = 60000;
    c.nlist = 3;
    expectExactBothWays(c, {12, 4, 8}, {100});
    c.n = 20000;
    c.nlist = 2500;
    c.q = 6;
    makeProduct(c, {4, 2, 6}).expectExact(2500, {10, 2500, 30000});
}

TEST_F(IvfProductSearch, SmallBatchesChangeNoBit) {
    IvfCase c;
    c.n = 3000;
    c.nlist = 16;
    c.q = 400;
    const ProductData data = makeProduct(c, {40, 10, 8});
    const auto index = data.makeIndex();
    index->nprobe = 5;
    const int k = 30;
    const auto& queries = data.oracle.queries;
    const SearchOutput whole = searchOnDevice(*index, queries, k);
    data.oracle.expectExact(whole, 5, k);
    const int d = data.c.d;
    SearchOutput parts;
    for (int64_t q = 0; q < c.q; q += 9) {
        const int64_t count = std::min<int64_t>(9, c.q - q);
        const SearchOutput found = searchOnDevice(
                *index,
                {queries.begin() + q * d, queries.begin() + (q + count) * d},
                k);
        parts.distances.insert(
                parts.distances.end(),
                found.distances.begin(),
                found.distances.end());
        parts.labels.insert(
                parts.labels.end(), found.labels.begin(), found.labels.end());
    }
    EXPECT_TRUE(sameOutput(parts, whole));
}

} // namespace
} // namespace faiss_bits::test
