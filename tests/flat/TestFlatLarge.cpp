/// More than 2^31 and 2^32 distances in one call.

#include <faiss/gpu/GpuDistance.h>

#include "faiss_bits/flat/GpuBitsDistance.h"
#include "tests/flat/IndexHarness.h"

namespace faiss_bits::test {
namespace {

constexpr size_t kGiB = size_t(1) << 30;

class FlatLarge : public GpuTest {
   protected:
    /// Integer queries and vectors of 8 dimensions.
    static FlatData makeData(int64_t n, int64_t q) {
        FlatCase c;
        c.n = n;
        c.d = 8;
        c.q = q;
        c.fill = Fill::Integers;
        return FlatData(c);
    }

    /// The oracle for one query of many.
    static std::vector<Ranked> nearestOf(
            const FlatData& data,
            int64_t query,
            int k) {
        const auto distances = distancesToAll(
                data.queries.data() + query * data.c.d,
                data.vectors.data(),
                data.c.n,
                data.c.d,
                data.isIP());
        return topKOfRow(
                distances.data(), data.c.n, nullptr, 0, k, data.isIP());
    }
};

TEST_F(FlatLarge, MoreThan2To32Distances) {
    const int k = 20;
    for (int64_t q : {2100, 4200}) {
        const FlatData data = makeData((int64_t(1) << 20) + 3, q);
        ASSERT_GT(data.c.n * q, int64_t(q == 2100 ? 1 : 2) << 31);
        const auto index = data.makeIndex();
        const auto out = searchOnHost(*index, data.queries, k);
        for (int64_t query : {int64_t(0), q / 3, q / 2, q - 1}) {
            const auto expected = nearestOf(data, query, k);
            for (int j = 0; j < k; ++j) {
                ASSERT_EQ(out.labels[query * k + j], expected[j].id)
                        << "q=" << q << " query " << query << " place " << j;
                ASSERT_EQ(out.distances[query * k + j], expected[j].key);
            }
        }
    }
}

/// More than 2^31 components of vectors. Each vector but one is there many
/// times, so that a certified search ends in a scan of all of them.
TEST_F(FlatLarge, MoreThan2To31Components) {
    const int d = 1024;
    const int64_t block = 1 << 16;
    const int64_t blocks = 33; // 2^21 + 2^16 vectors
    if (!hasFreeMemory(12 * kGiB)) {
        GTEST_SKIP() << "needs 12 GiB of free device memory";
    }
    const auto usual = makeVectors(block, d, 1, Fill::Integers);
    const auto last = makeVectors(1, d, 2, Fill::Integers);
    // The only vector of its kind is the very last.
    auto lastBlock = usual;
    std::copy(last.begin(), last.end(), lastBlock.end() - d);
    const auto distances =
            distancesToAll(last.data(), usual.data(), block, d, false);
    const auto nearest =
            topKOfRow(distances.data(), block, nullptr, 0, 1, false);
    for (DataType storage : kStorages) {
        GpuIndexBitsFlatL2 index(sharedResources(), d, configOf(storage));
        index.reserve(block * blocks);
        for (int64_t i = 0; i < blocks; ++i) {
            const auto& vectors = i + 1 == blocks ? lastBlock : usual;
            index.add(block, vectors.data());
        }
        ASSERT_GT(index.ntotal * d, int64_t(1) << 31);
        for (auto mode : {SearchMode::Certified, SearchMode::Plain}) {
            index.search_mode = mode;
            for (int copies : {1, 40}) {
                std::vector<float> queries;
                for (int i = 0; i < copies; ++i) {
                    queries.insert(queries.end(), last.begin(), last.end());
                }
                const auto out = searchOnHost(index, queries, 3);
                for (int i = 0; i < copies; ++i) {
                    EXPECT_EQ(out.labels[3 * i], index.ntotal - 1);
                    EXPECT_EQ(out.distances[3 * i], 0.f);
                    for (int j : {1, 2}) {
                        EXPECT_EQ(
                                out.labels[3 * i + j],
                                nearest[0].id + (j - 1) * block);
                        EXPECT_EQ(out.distances[3 * i + j], nearest[0].key);
                    }
                }
            }
        }
        std::vector<float> back(d);
        index.reconstruct(index.ntotal - 1, back.data());
        EXPECT_EQ(back, last);
    }
}

TEST_F(FlatLarge, AllDistancesBeyond2To31) {
    const FlatData data = makeData((int64_t(1) << 20) + 3, 2100);
    const size_t count = size_t(data.c.n) * data.c.q;
    ASSERT_GT(count, size_t(1) << 31);
    if (!hasFreeMemory(count * sizeof(float) + 4 * kGiB)) {
        GTEST_SKIP() << "needs 13 GiB of free device memory";
    }
    const DeviceBuffer<float> vectors(data.vectors);
    const DeviceBuffer<float> queries(data.queries);
    const DeviceBuffer<float> out(count);
    faiss::gpu::GpuDistanceParams args;
    args.metric = faiss::METRIC_L2;
    args.k = -1;
    args.dims = data.c.d;
    args.vectors = vectors.data();
    args.numVectors = data.c.n;
    args.queries = queries.data();
    args.numQueries = data.c.q;
    args.outDistances = out.data();
    gpu::bfKnnBits(sharedResources(), args);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (int64_t query : {0, 1000, 2099}) {
        std::vector<float> row(data.c.n);
        ASSERT_EQ(
                cudaMemcpy(
                        row.data(),
                        out.data() + size_t(query) * data.c.n,
                        row.size() * sizeof(float),
                        cudaMemcpyDeviceToHost),
                cudaSuccess);
        const auto expected = distancesToAll(
                data.queries.data() + query * data.c.d,
                data.vectors.data(),
                data.c.n,
                data.c.d,
                false);
        for (int64_t i = 0; i < data.c.n; ++i) {
            ASSERT_EQ(row[i], expected[i]) << "query " << query << " id " << i;
        }
    }
}

} // namespace
} // namespace faiss_bits::test
