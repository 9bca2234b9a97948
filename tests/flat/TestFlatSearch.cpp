/// Exactness of GpuIndexBitsFlat over its shapes, from host and device memory.

#include "tests/flat/suite/FlatSearch.h"
#include "tests/flat/suite/GpuFlatKind.h"

namespace faiss_bits::test {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(GpuFlatSearch, FlatSearch, GpuFlatKind);

class GpuFlatSearch : public GpuTest {};

/// x, distances and labels each on the host or on the device.
TEST_F(GpuFlatSearch, SmallEveryMixOfPointers) {
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

TEST_F(GpuFlatSearch, PinnedHostMemoryIsReadyOnReturn) {
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

TEST_F(GpuFlatSearch, SmallAssignOnTheDeviceGivesTheLabels) {
    FlatCase c;
    c.fill = Fill::Integers;
    const FlatData data(c);
    const auto index = data.makeIndex();
    for (int k : {1, 7, 2048}) {
        const auto expected = searchOnHost(*index, data.queries, k).labels;
        const DeviceBuffer<float> x(data.queries);
        const DeviceBuffer<int64_t> onDevice(c.q * k);
        index->assign(c.q, x.data(), onDevice.data(), k);
        EXPECT_EQ(onDevice.download(), expected);
    }
}

} // namespace
} // namespace faiss_bits::test
