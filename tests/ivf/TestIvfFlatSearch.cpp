/// Searches of GpuIndexBitsIVFFlat against the oracle: shapes, layouts, ids.

#include "tests/ivf/IvfHarness.h"

namespace faiss_bits::test {
namespace {

class IvfFlatSearch : public GpuTest {};

/// Both ways of scanning lists: few queries for the lists, and many.
void expectExactBothWays(IvfCase c, const std::vector<int>& ks) {
    const int nprobe = std::min(c.nlist, 1 + c.nlist / 3);
    for (int64_t q : {int64_t(3), int64_t(9) * c.nlist / nprobe + 70}) {
        c.q = q;
        const IvfData data(c);
        const auto index = data.makeIndex();
        index->nprobe = nprobe;
        for (int k : ks) {
            data.expectExact(
                    searchOnDevice(*index, data.queries, k), nprobe, k);
        }
    }
}

TEST_F(IvfFlatSearch, SmallEveryKind) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        for (bool interleaved : {true, false}) {
            for (auto indices :
                 {faiss::gpu::INDICES_64_BIT,
                  faiss::gpu::INDICES_32_BIT,
                  faiss::gpu::INDICES_CPU,
                  faiss::gpu::INDICES_IVF}) {
                for (Fill fill : {Fill::Uniform, Fill::Integers}) {
                    IvfCase c;
                    c.metric = metric;
                    c.interleaved = interleaved;
                    c.indices = indices;
                    c.fill = fill;
                    c.d = fill == Fill::Integers ? 3 : 20; // ties
                    expectExactBothWays(c, {1, 10, 100});
                }
            }
        }
    }
}

TEST_F(IvfFlatSearch, SmallDims) {
    for (int d : {1, 2, 7, 8, 9, 31, 32, 33, 63, 65, 128, 130, 1023, 1030}) {
        for (bool interleaved : {true, false}) {
            IvfCase c;
            c.d = d;
            c.n = 400;
            c.interleaved = interleaved;
            c.metric = d % 2 ? faiss::METRIC_L2 : faiss::METRIC_INNER_PRODUCT;
            c.seed = uint32_t(d);
            expectExactBothWays(c, {12});
        }
    }
}

TEST_F(IvfFlatSearch, SmallNumbersOfListsAndVectors) {
    for (int nlist : {1, 2, 31, 33, 300}) {
        for (int64_t n : {0, 1, 2, 31, 32, 33, 255, 257, 3000}) {
            IvfCase c;
            c.n = n;
            c.nlist = nlist;
            c.d = 5;
            c.seed = uint32_t(n + nlist);
            expectExactBothWays(c, {7});
        }
    }
}

TEST_F(IvfFlatSearch, SmallRandomShapes) {
    std::mt19937 random(20);
    const auto draw = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };
    for (int i = 0; i < 60; ++i) {
        IvfCase c;
        c.metric = draw(0, 1) ? faiss::METRIC_L2 : faiss::METRIC_INNER_PRODUCT;
        c.n = draw(0, 2500);
        c.d = draw(1, 70);
        c.nlist = draw(1, 60);
        c.q = draw(1, 400);
        c.fill = draw(0, 1) ? Fill::Uniform : Fill::Integers;
        c.interleaved = draw(0, 1) == 1;
        c.seed = uint32_t(i);
        const int nprobe = draw(1, c.nlist + 3);
        const int k = draw(0, 3) ? draw(1, 40) : draw(1, 3000);
        const IvfData data(c);
        const auto index = data.makeIndex();
        index->nprobe = nprobe;
        data.expectExact(searchOnDevice(*index, data.queries, k), nprobe, k);
    }
}

TEST_F(IvfFlatSearch, ManyListsAndManyNeighbours) {
    // More lists and neighbours than FAISS takes.
    IvfCase c;
    c.n = 40000;
    c.d = 4;
    c.nlist = 2500;
    for (int64_t q : {2, 9}) {
        c.q = q;
        const IvfData data(c);
        const auto index = data.makeIndex();
        for (int nprobe : {2049, 2500, 5000}) {
            index->nprobe = nprobe;
            for (int k : {10, 2048, 2500, 20000, 50000}) {
                data.expectExact(
                        searchOnDevice(*index, data.queries, k), nprobe, k);
            }
        }
    }
}

TEST_F(IvfFlatSearch, LongLists) {
    IvfCase c;
    c.n = 60000;
    c.d = 12;
    c.nlist = 3;
    for (int64_t q : {1, 40}) {
        c.q = q;
        const IvfData data(c);
        const auto index = data.makeIndex();
        index->nprobe = 2;
        data.expectExact(searchOnDevice(*index, data.queries, 100), 2, 100);
    }
}

TEST_F(IvfFlatSearch, SmallBatchesAndScratchChangeNoBit) {
    IvfCase c;
    c.n = 5000;
    c.d = 40;
    c.nlist = 16;
    c.q = 700;
    const IvfData data(c);
    const auto index = data.makeIndex();
    index->nprobe = 5;
    const int k = 30;
    const SearchOutput whole = searchOnDevice(*index, data.queries, k);
    data.expectExact(whole, 5, k);
    for (int64_t rows : {1, 3, 64, 699}) {
        SearchOutput parts;
        for (int64_t q = 0; q < c.q; q += rows) {
            const int64_t count = std::min(rows, c.q - q);
            const std::vector<float> part(
                    data.queries.begin() + q * c.d,
                    data.queries.begin() + (q + count) * c.d);
            const SearchOutput found = searchOnDevice(*index, part, k);
            parts.distances.insert(
                    parts.distances.end(),
                    found.distances.begin(),
                    found.distances.end());
            parts.labels.insert(
                    parts.labels.end(),
                    found.labels.begin(),
                    found.labels.end());
        }
        EXPECT_TRUE(sameOutput(parts, whole)) << rows << " queries at a time";
    }
}

} // namespace
} // namespace faiss_bits::test
