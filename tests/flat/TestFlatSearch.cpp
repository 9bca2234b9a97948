/// Exactness of GpuIndexBitsFlat over its shapes, from host and device memory.

#include <faiss/gpu/GpuIndexFlat.h>

#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

class FlatSearch : public GpuTest {};

void expectSearches(const FlatCase& c, const std::vector<int>& ks) {
    const FlatData data(c);
    const auto index = data.makeIndex();
    ASSERT_EQ(index->ntotal, c.n);
    for (int k : ks) {
        const SearchOutput onHost = searchOnHost(*index, data.queries, k);
        data.expectNearest(onHost, k);
        if (c.fill == Fill::Integers) {
            data.expectExact(onHost, k);
        }
        ASSERT_TRUE(sameOutput(searchOnDevice(*index, data.queries, k), onHost))
                << c << " k=" << k;
    }
}

TEST_F(FlatSearch, SmallOfEveryKind) {
    FlatCase c;
    c.n = 300;
    c.d = 20;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 5, 40}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            expectSearches(kind, {1, 10, 400});
        }
    }
}

TEST_F(FlatSearch, EveryK) {
    FlatCase c;
    c.n = 5000;
    c.d = 33;
    for (int64_t q : {3, 40}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            expectSearches(
                    kind, {1, 2, 31, 32, 33, 100, 1023, 1024, 2047, 2048});
        }
    }
}

/// FAISS's own limit is 2048: beyond it, up to ntotal and above it.
TEST_F(FlatSearch, AnyK) {
    FlatCase c;
    c.n = 5000;
    c.d = 12;
    for (Fill fill : {Fill::Uniform, Fill::Integers}) {
        c.fill = fill;
        for (int64_t q : {1, 16, 40}) {
            c.q = q;
            for (const FlatCase& kind : kindsOf(c)) {
                expectSearches(kind, {2049, 4096, 4999, 5000, 5001, 9000});
            }
        }
    }
}

TEST_F(FlatSearch, AllOfManyVectors) {
    FlatCase c;
    c.n = 300007;
    c.d = 4;
    c.q = 3;
    c.fill = Fill::Integers;
    for (const FlatCase& kind : kindsOf(c)) {
        expectSearches(kind, {100000, int(c.n)});
    }
}

/// Every way into a search takes the k that search() takes.
TEST_F(FlatSearch, SmallAnyKInEveryCall) {
    FlatCase c;
    c.n = 2500;
    c.d = 6;
    c.q = 4;
    c.fill = Fill::Integers;
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        const auto index = data.makeIndex();
        for (int64_t k : {2049, 2500}) {
            const auto expected = searchOnHost(*index, data.queries, k);
            data.expectExact(expected, k);
            std::vector<int64_t> labels(c.q * k, -123);
            index->assign(c.q, data.queries.data(), labels.data(), k);
            EXPECT_EQ(labels, expected.labels);

            SearchOutput out;
            out.distances.resize(c.q * k);
            out.labels.resize(c.q * k);
            std::vector<float> found(c.q * k * c.d);
            index->search_and_reconstruct(
                    c.q,
                    data.queries.data(),
                    k,
                    out.distances.data(),
                    out.labels.data(),
                    found.data());
            EXPECT_TRUE(sameOutput(out, expected)) << kind << " k=" << k;
            for (int64_t i = 0; i < c.q * k; ++i) {
                for (int j = 0; j < c.d; ++j) {
                    ASSERT_EQ(
                            found[i * c.d + j],
                            data.vectors[out.labels[i] * c.d + j])
                            << kind << " k=" << k << " place " << i;
                }
            }
#if FAISS_BITS_FAISS_HAS_NUMERIC_TYPE
            index->search_ex(
                    c.q,
                    data.queries.data(),
                    faiss::NumericType::Float32,
                    k,
                    out.distances.data(),
                    out.labels.data());
            EXPECT_TRUE(sameOutput(out, expected)) << kind << " k=" << k;
#endif
        }
    }
}

TEST_F(FlatSearch, EveryDimension) {
    FlatCase c;
    c.n = 2000;
    for (int d : {1, 3, 4, 7, 16, 33, 64, 128, 130, 768}) {
        c.d = d;
        for (int64_t q : {2, 33}) {
            c.q = q;
            for (const FlatCase& kind : kindsOf(c)) {
                expectSearches(kind, {1, 20});
            }
        }
    }
}

TEST_F(FlatSearch, EveryBatch) {
    FlatCase c;
    c.n = 3000;
    c.d = 24;
    for (int64_t q :
         {1,
          2,
          3,
          7,
          8,
          9,
          15,
          16,
          17,
          31,
          32,
          33,
          64,
          65,
          100,
          255,
          256,
          257}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            expectSearches(kind, {1, 50});
        }
    }
}

TEST_F(FlatSearch, ManyVectors) {
    FlatCase c;
    c.n = 200003;
    c.d = 16;
    c.fill = Fill::Integers;
    for (int64_t q : {1, 20}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            expectSearches(kind, {1, 100, 2048});
        }
    }
}

TEST_F(FlatSearch, SmallShortResultsAreFilledUp) {
    FlatCase c;
    c.d = 8;
    c.fill = Fill::Integers;
    for (int64_t n : {1, 2, 31, 99}) {
        c.n = n;
        for (int64_t q : {1, 33}) {
            c.q = q;
            for (const FlatCase& kind : kindsOf(c)) {
                expectSearches(kind, {100, 2048, 5000});
            }
        }
    }
}

TEST_F(FlatSearch, SmallEmptyIndex) {
    FlatCase c;
    c.n = 0;
    c.d = 5;
    for (int64_t q : {1, 40}) {
        c.q = q;
        for (const FlatCase& kind : kindsOf(c)) {
            expectSearches(kind, {1, 7, 2048, 5000});
        }
    }
}

TEST_F(FlatSearch, SmallNoQueries) {
    FlatCase c;
    const FlatData data(c);
    const auto index = data.makeIndex();
    index->search(0, nullptr, 5, nullptr, nullptr);
    index->assign(0, nullptr, nullptr, 5);
    index->add(0, nullptr);
    EXPECT_EQ(index->ntotal, c.n);
}

/// x, distances and labels each on the host or on the device.
TEST_F(FlatSearch, SmallEveryMixOfPointers) {
    FlatCase c;
    c.fill = Fill::Integers;
    const int k = 10;
    for (int64_t q : {1, 40}) {
        c.q = q;
        const FlatData data(c);
        const auto index = data.makeIndex();
        const SearchOutput expected = searchOnHost(*index, data.queries, k);
        for (int mix = 0; mix < 8; ++mix) {
            const DeviceBuffer<float> x(data.queries);
            const DeviceBuffer<float> distances(q * k);
            const DeviceBuffer<int64_t> labels(q * k);
            SearchOutput out;
            out.distances.resize(q * k);
            out.labels.resize(q * k);
            index->search(
                    q,
                    mix & 1 ? x.data() : data.queries.data(),
                    k,
                    mix & 2 ? distances.data() : out.distances.data(),
                    mix & 4 ? labels.data() : out.labels.data());
            if (mix & 2) {
                out.distances = distances.download();
            }
            if (mix & 4) {
                out.labels = labels.download();
            }
            EXPECT_TRUE(sameOutput(out, expected)) << "mix " << mix;
        }
    }
}

TEST_F(FlatSearch, PinnedHostMemoryIsReadyOnReturn) {
    FlatCase c;
    c.n = 100000;
    c.q = 200;
    c.fill = Fill::Integers;
    const int k = 64;
    const FlatData data(c);
    const auto index = data.makeIndex();
    float* x = nullptr;
    float* distances = nullptr;
    int64_t* labels = nullptr;
    ASSERT_EQ(cudaMallocHost(&x, sizeof(float) * c.q * c.d), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(&distances, sizeof(float) * c.q * k), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(&labels, sizeof(int64_t) * c.q * k), cudaSuccess);
    std::copy(data.queries.begin(), data.queries.end(), x);
    index->search(c.q, x, k, distances, labels);
    SearchOutput out;
    out.distances.assign(distances, distances + c.q * k);
    out.labels.assign(labels, labels + c.q * k);
    data.expectExact(out, k);
    EXPECT_EQ(cudaFreeHost(x), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(distances), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(labels), cudaSuccess);
}

TEST_F(FlatSearch, SmallAssignGivesTheLabels) {
    FlatCase c;
    c.fill = Fill::Integers;
    const FlatData data(c);
    const auto index = data.makeIndex();
    for (int k : {1, 7, 2048}) {
        const auto expected = searchOnHost(*index, data.queries, k).labels;
        std::vector<int64_t> labels(c.q * k, -123);
        index->assign(c.q, data.queries.data(), labels.data(), k);
        EXPECT_EQ(labels, expected);

        const DeviceBuffer<float> x(data.queries);
        const DeviceBuffer<int64_t> onDevice(c.q * k);
        index->assign(c.q, x.data(), onDevice.data(), k);
        EXPECT_EQ(onDevice.download(), expected);
    }
}

/// The same ids as FAISS's own index where no two distances are near.
TEST_F(FlatSearch, AgreesWithFaiss) {
    FlatCase c;
    c.n = 4000;
    c.d = 64;
    c.q = 50;
    for (const FlatCase& kind : kindsOf(c)) {
        const FlatData data(kind);
        const auto ours = data.makeIndex();
        faiss::gpu::GpuIndexFlatConfig config;
        config.useFloat16 = kind.useFloat16;
        faiss::gpu::GpuIndexFlat theirs(
                sharedResources(), kind.d, kind.metric, config);
        theirs.add(kind.n, data.vectors.data());
        const int k = 10;
        const auto a = searchOnHost(*ours, data.queries, k);
        const auto b = searchOnHost(theirs, data.queries, k);
        int same = 0;
        for (size_t i = 0; i < a.labels.size(); ++i) {
            same += a.labels[i] == b.labels[i];
        }
        // FAISS squares float16 components in float16.
        EXPECT_GE(same, int(a.labels.size() * (kind.useFloat16 ? 0.9 : 0.99)))
                << kind;
    }
}

} // namespace
} // namespace faiss_bits::test
