/// Vectors of a GpuIndexBitsIVFFlat by their ids.

#include "tests/ivf/IvfVectorsHarness.h"

namespace faiss_bits::test {

TEST_F(IvfVectors, SmallReconstruct) {
    for (const IvfCase& c : kindsOf(someCase())) {
        const IvfData data(c);
        const auto index = data.makeIndex();
        auto keys = data.selectorIds();
        std::shuffle(keys.begin(), keys.end(), std::mt19937(3));
        expectBatch(data, *index, keys, false);
        expectBatch(data, *index, keys, true);
        keys.resize(40);
        keys[3] = keys[9];
        keys[5] = -1;
        expectBatch(data, *index, keys, false);
        expectBatch(data, *index, {}, false);
        std::vector<float> one(c.d);
        index->reconstruct(keys[7], one.data());
        EXPECT_EQ(one, vectorsOf(data).at(keys[7]));
        std::vector<float> vectors(2 * c.d);
        const int64_t nowhere = 888888888888;
        const int64_t some[] = {keys[0], nowhere};
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct_batch(2, some, vectors.data()); },
                "keys",
                "888888888888"));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct(nowhere, one.data()); },
                "key",
                "888888888888"));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct_batch(1, nullptr, one.data()); },
                "keys"));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct_batch(1, some, nullptr); }, "out"));
    }
}

TEST_F(IvfVectors, SmallReconstructRange) {
    for (auto indices : {faiss::gpu::INDICES_64_BIT, faiss::gpu::INDICES_CPU}) {
        IvfCase c = someCase();
        c.indices = indices;
        std::vector<int64_t> ids(c.n);
        std::iota(ids.begin(), ids.end(), int64_t(50));
        const auto vectors = makeVectors(c.n, c.d, 1);
        IvfData data(c, vectors, makeVectors(c.q, c.d, 2), ids);
        const auto index = data.makeIndex();
        std::vector<float> out(vectors.size());
        index->reconstruct_n(50, c.n, out.data());
        EXPECT_EQ(out, vectors);
        out.resize(size_t(10) * c.d);
        index->reconstruct_n(700, 10, out.data());
        EXPECT_TRUE(std::equal(
                out.begin(), out.end(), vectors.begin() + 650 * c.d));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct_n(45, 10, out.data()); }, "i0", "45"));
        EXPECT_TRUE(faissThrowsNaming(
                [&] { index->reconstruct_n(0, -1, out.data()); }, "n", "-1"));
    }
}

TEST_F(IvfVectors, SmallSearchAndReconstruct) {
    const IvfData data(someCase());
    const auto index = data.makeIndex();
    index->nprobe = 1;
    const int64_t k = 400; // some have fewer
    const SearchOutput want = searchOnHost(*index, data.queries, k);
    SearchOutput found = want;
    std::vector<float> vectors(data.c.q * k * data.c.d, -1.0f);
    index->search_and_reconstruct(
            data.c.q,
            data.queries.data(),
            k,
            found.distances.data(),
            found.labels.data(),
            vectors.data());
    EXPECT_TRUE(sameOutput(found, want));
    const auto all = vectorsOf(data);
    for (int64_t i = 0; i < data.c.q * k; ++i) {
        if (found.labels[i] != -1) {
            ASSERT_TRUE(std::equal(
                    vectors.begin() + i * data.c.d,
                    vectors.begin() + (i + 1) * data.c.d,
                    all.at(found.labels[i]).begin()));
        }
    }
}

} // namespace faiss_bits::test
