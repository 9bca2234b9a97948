/// Searches of a few queries in lists, which find these lists themselves where
/// the quantizer is a flat index of ours.

#include "tests/ivf/IvfHarness.h"

namespace faiss_bits::test {
namespace {

using faiss_bits::gpu::GpuIndexBitsFlatConfig;

class IvfFewQueries : public GpuTest {};

IvfCase someCase(uint32_t seed) {
    IvfCase c;
    c.n = 3000;
    c.d = 24;
    c.nlist = 40;
    c.seed = seed;
    return c;
}

TEST_F(IvfFewQueries, AnyNumber) {
    for (Fill fill : {Fill::Uniform, Fill::Integers}) {
        for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
            IvfCase c = someCase(3);
            c.fill = fill;
            c.metric = metric;
            c.d = fill == Fill::Integers ? 3 : c.d; // ties of lists, too
            for (int64_t q : {1, 2, 5, 16, 64}) {
                c.q = q;
                const IvfData data(c);
                const auto index = data.makeIndex();
                for (int nprobe : {1, 8, c.nlist}) {
                    index->nprobe = nprobe;
                    for (int k : {1, 10, 129}) {
                        data.expectExact(
                                searchOnDevice(*index, data.queries, k),
                                nprobe,
                                k);
                    }
                }
            }
        }
    }
}

TEST_F(IvfFewQueries, TheSameBitsAsOfManyTogether) {
    IvfCase c = someCase(4);
    c.n = 20000;
    c.d = 64;
    c.q = 700; // by estimates
    const IvfData data(c);
    const auto index = data.makeIndex();
    index->nprobe = 9;
    const int k = 20;
    const auto together = searchOnDevice(*index, data.queries, k);
    for (int64_t first = 0; first < c.q; first += 97) {
        for (int64_t q : {1, 3, 40}) {
            const int64_t count = std::min(q, c.q - first);
            const std::vector<float> some(
                    data.queries.begin() + first * c.d,
                    data.queries.begin() + (first + count) * c.d);
            const auto found = searchOnDevice(*index, some, k);
            EXPECT_TRUE(std::equal(
                    found.labels.begin(),
                    found.labels.end(),
                    together.labels.begin() + first * k));
            EXPECT_EQ(
                    0,
                    std::memcmp(
                            found.distances.data(),
                            together.distances.data() + first * k,
                            found.distances.size() * sizeof(float)));
        }
    }
}

TEST_F(IvfFewQueries, SmallNumbersThatAreNone) {
    // NaN and infinities in centroids, vectors and queries.
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        IvfCase c = someCase(5);
        c.metric = metric;
        c.q = 6;
        const IvfData plain(c);
        auto vectors = plain.vectors;
        auto queries = plain.queries;
        vectors[5] = HUGE_VALF;
        vectors[c.d * 7 + 1] = std::nanf("");
        vectors[c.d * 50 + 2] = -HUGE_VALF;
        queries[1] = std::nanf("");
        queries[c.d + 3] = HUGE_VALF;
        queries[2 * c.d] = 3e38f;
        const IvfData data(c, vectors, queries, plain.ids);
        const auto index = data.makeIndex();
        for (int nprobe : {2, c.nlist}) {
            index->nprobe = nprobe;
            data.expectExact(
                    searchOnDevice(*index, data.queries, 12), nprobe, 12);
        }
    }
}

TEST_F(IvfFewQueries, MoreNeighboursThanVectors) {
    IvfCase c = someCase(6);
    c.n = 90;
    c.nlist = 30; // some are empty
    c.q = 3;
    const IvfData data(c);
    const auto index = data.makeIndex();
    for (int nprobe : {1, 29, 30}) {
        index->nprobe = nprobe;
        for (int k : {89, 90, 91, 128, 129, 2000}) {
            data.expectExact(
                    searchOnDevice(*index, data.queries, k), nprobe, k);
        }
    }
}

TEST_F(IvfFewQueries, OneListOfMost) {
    // Lists so uneven that no bound of a query's vectors is near.
    IvfCase c = someCase(7);
    c.n = 6000;
    c.q = 4;
    const IvfData even(c);
    auto vectors = even.vectors;
    // Most are one of the centroids, and a little.
    for (int64_t i = c.n / 5; i < c.n; ++i) {
        for (int j = 0; j < c.d; ++j) {
            vectors[i * c.d + j] =
                    even.centroids[j] + 1e-3f * even.vectors[i * c.d + j];
        }
    }
    const IvfData data(c, vectors, even.queries, even.ids);
    const auto index = data.makeIndex();
    for (int nprobe : {1, 7, c.nlist}) {
        index->nprobe = nprobe;
        data.expectExact(searchOnDevice(*index, data.queries, 30), nprobe, 30);
    }
}

/// Searches for the lists that are farthest.
struct FarthestFirst : GpuIndexBitsFlat {
    using GpuIndexBitsFlat::GpuIndexBitsFlat;

    void search(
            idx_t n,
            const float* x,
            idx_t k,
            float* distances,
            idx_t* labels,
            const faiss::SearchParameters* = nullptr) const override {
        const std::vector<float> all(size_t(n) * ntotal);
        const DeviceBuffer<float> toAll(all);
        const DeviceBuffer<int64_t> lists(
                std::vector<int64_t>(size_t(n) * ntotal));
        GpuIndexBitsFlat::search(n, x, ntotal, toAll.data(), lists.data());
        auto ordered = lists.download();
        std::vector<int64_t> out;
        for (idx_t i = 0; i < n; ++i) {
            for (idx_t j = 0; j < k; ++j) {
                out.push_back(ordered[(i + 1) * ntotal - 1 - j]);
            }
        }
        BITS_CUDA_CHECK(cudaMemset(distances, 0, out.size() * sizeof(float)));
        BITS_CUDA_CHECK(cudaMemcpy(
                labels,
                out.data(),
                out.size() * sizeof(int64_t),
                cudaMemcpyDefault));
    }
};

TEST_F(IvfFewQueries, SmallQuantizersAreAskedWhereTheySearchOtherwise) {
    IvfCase c = someCase(8);
    c.q = 3;
    const IvfData data(c);
    const int nprobe = 5;
    const int k = 8;
    GpuIndexBitsFlatConfig half;
    half.useFloat16 = true;
    GpuIndexBitsFlat ofHalf(sharedResources(), c.d, c.metric, half);
    GpuIndexBitsFlat plain(sharedResources(), c.d, c.metric);
    plain.search_mode = SearchMode::Plain;
    FarthestFirst farthest(sharedResources(), c.d, c.metric);
    for (GpuIndexBitsFlat* quantizer :
         {&ofHalf, &plain, static_cast<GpuIndexBitsFlat*>(&farthest)}) {
        quantizer->add(c.nlist, data.centroids.data());
        GpuIndexBitsIVFFlat index(
                sharedResources(), quantizer, c.d, c.nlist, c.metric);
        index.add_with_ids(c.n, data.vectors.data(), data.ids.data());
        index.nprobe = nprobe;
        // What it says itself.
        const DeviceBuffer<float> x(data.queries);
        const DeviceBuffer<float> distances(c.q * nprobe);
        const DeviceBuffer<int64_t> lists(c.q * nprobe);
        quantizer->search(
                c.q, x.data(), nprobe, distances.data(), lists.data());
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        const DeviceBuffer<float> found(c.q * k);
        const DeviceBuffer<int64_t> labels(c.q * k);
        index.search_preassigned(
                c.q,
                x.data(),
                k,
                lists.data(),
                distances.data(),
                found.data(),
                labels.data(),
                false);
        const auto searched = searchOnDevice(index, data.queries, k);
        EXPECT_EQ(searched.labels, labels.download());
        EXPECT_EQ(searched.distances, found.download());
    }
}

TEST_F(IvfFewQueries, SmallQuantizersCountTheirQueries) {
    IvfCase c = someCase(9);
    c.q = 3;
    const IvfData data(c);
    const auto index = data.makeIndex();
    index->nprobe = 4;
    auto* quantizer = dynamic_cast<GpuIndexBitsFlat*>(index->quantizer);
    ASSERT_NE(quantizer, nullptr);
    quantizer->reset_stats();
    searchOnDevice(*index, data.queries, 5);
    EXPECT_EQ(quantizer->stats().certified, 3);
    EXPECT_EQ(quantizer->stats().repeated, 0);
    EXPECT_EQ(quantizer->stats().rescored, 3 * c.nlist);
    // As where it is asked.
    quantizer->reset_stats();
    const DeviceBuffer<float> x(data.queries);
    const DeviceBuffer<float> distances(c.q * 4);
    const DeviceBuffer<int64_t> lists(c.q * 4);
    quantizer->search(c.q, x.data(), 4, distances.data(), lists.data());
    EXPECT_EQ(quantizer->stats().certified, 3);
    EXPECT_EQ(quantizer->stats().rescored, 3 * c.nlist);
}

} // namespace
} // namespace faiss_bits::test
