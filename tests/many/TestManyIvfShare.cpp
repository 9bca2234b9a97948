/// Shards of lists that are asked for their share of the results first: the
/// bits of one index, whatever the shares are in truth.

#include "tests/many/ManyIvfHarness.h"

namespace faiss_bits::test {
namespace {

class ManyIvfShare : public GpuTest {
   protected:
    static constexpr int kDims = 8;
    static constexpr int kLists = 32;
    static constexpr int64_t kK = 100;
    /// Enough for shards to be asked for their share: 2^18 results.
    static constexpr int64_t kQueries = (int64_t(1) << 18) / kK + 1;

    /// Of vectors in lists of their nearest of the first ones.
    static std::unique_ptr<faiss::IndexIVFFlat> listsOf(
            faiss::IndexFlat& quantizer,
            const std::vector<float>& vectors,
            int nprobe,
            const std::vector<float>& centroids) {
        quantizer.add(kLists, centroids.data());
        auto cpu =
                std::make_unique<faiss::IndexIVFFlat>(&quantizer, kDims, kLists);
        cpu->is_trained = true;
        cpu->nprobe = size_t(nprobe);
        cpu->add(idx_t(vectors.size()) / kDims, vectors.data());
        return cpu;
    }

    static void expectSame(const faiss::IndexIVFFlat& cpu, int times) {
        for (const int type : shardTypes()) {
            GpuMultipleClonerOptions options;
            options.shard = true;
            options.shard_type = type;
            for (const auto& config : waysOf()) {
                SCOPED_TRACE(
                        ::testing::Message() << "type " << type << " "
                                             << nameOfWay(config));
                const IvfPair pair(placesOf(4), cpu, options, config);
                for (const int64_t q : {kQueries, kQueries + 1500}) {
                    const auto queries = makeVectors(q, kDims, 2);
                    const auto want = searchOnDevice(*pair.one, queries, kK);
                    for (int i = 0; i < times; ++i) {
                        ASSERT_TRUE(sameOutput(
                                searchOnDevice(*pair.many, queries, kK), want))
                                << "search " << i << " of " << q;
                    }
                    ASSERT_TRUE(sameOutput(
                            searchOnHost(*pair.many, queries, kK), want))
                            << "on the host, " << q;
                }
            }
        }
    }
};

TEST_F(ManyIvfShare, VectorsInRandomOrder) {
    faiss::IndexFlat quantizer(kDims);
    const auto vectors = makeVectors(20000, kDims, 1);
    expectSame(*listsOf(quantizer, vectors, 8, vectors), 2);
}

/// The nearest of a query are all in one shard: every query is made again, and
/// then shards are asked for all.
TEST_F(ManyIvfShare, VectorsInTheOrderOfTheirLists) {
    auto vectors = makeVectors(20000, kDims, 1);
    for (size_t i = 0; i < vectors.size(); i += kDims) {
        vectors[i] = 60.f * float(i) / float(vectors.size()) - 30.f;
    }
    std::vector<float> centroids;
    for (int list = 0; list < kLists; ++list) {
        const size_t at = vectors.size() / kDims / kLists * list * kDims;
        centroids.insert(
                centroids.end(),
                vectors.begin() + at,
                vectors.begin() + at + kDims);
    }
    faiss::IndexFlat quantizer(kDims);
    expectSame(*listsOf(quantizer, vectors, 3, centroids), 3);
}

/// A few queries alone are near one shard's vectors.
TEST_F(ManyIvfShare, FewQueriesAreMadeAgain) {
    auto vectors = makeVectors(20000, kDims, 1);
    const auto queries = makeVectors(kQueries, kDims, 2);
    for (int i = 0; i < 300; ++i) { // of the first shard, at the last query
        for (int c = 0; c < kDims; ++c) {
            vectors[(100 + i) * kDims + c] =
                    queries[(kQueries - 1) * kDims + c] + 1e-4f * float(i % 7);
        }
    }
    faiss::IndexFlat quantizer(kDims);
    expectSame(*listsOf(quantizer, vectors, 8, vectors), 2);
}

TEST_F(ManyIvfShare, EqualVectors) {
    auto vectors = makeVectors(20000, kDims, 1);
    for (size_t i = 0; i < vectors.size(); ++i) {
        vectors[i] = vectors[i % (40 * kDims)]; // 500 times each
    }
    faiss::IndexFlat quantizer(kDims);
    expectSame(*listsOf(quantizer, vectors, 8, vectors), 2);
}

/// Lists that are read have fewer vectors than are wanted.
TEST_F(ManyIvfShare, FewerVectorsThanResults) {
    faiss::IndexFlat quantizer(kDims);
    const auto vectors = makeVectors(1500, kDims, 1);
    expectSame(*listsOf(quantizer, vectors, 1, vectors), 2);
}

/// Parameters that choose lists, and some that choose vectors.
TEST_F(ManyIvfShare, Parameters) {
    faiss::IndexFlat quantizer(kDims);
    const auto vectors = makeVectors(20000, kDims, 1);
    const auto cpu = listsOf(quantizer, vectors, 2, vectors);
    GpuMultipleClonerOptions options;
    options.shard = true;
    const IvfPair pair(placesOf(4), *cpu, options, smallConfig());
    const auto queries = makeVectors(kQueries, kDims, 2);
    const faiss::IDSelectorRange range(500, 9000);
    faiss::SearchParametersIVF params;
    params.nprobe = 9;
    for (const bool isSelected : {false, true}) {
        params.sel = isSelected ? const_cast<faiss::IDSelectorRange*>(&range)
                                : nullptr;
        EXPECT_TRUE(sameOutput(
                searchOnHost(*pair.many, queries, kK, &params),
                searchOnHost(*pair.one, queries, kK, &params)))
                << "selected " << isSelected;
    }
}

} // namespace
} // namespace faiss_bits::test
