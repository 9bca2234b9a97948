/// Distance matrices and vector matrices beyond 2^31 and 2^32 elements.

#include <random>

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include "kernels/knn/FlatKnn.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/knn/KnnHarness.h"

namespace faiss_bits::test {
namespace {

class FlatKnnLarge : public FlatKnnTest {};

/// q n = 2.3e9 distances: not one may be addressed with 32 bits.
TEST_F(FlatKnnLarge, MoreThanTwoTo31Distances) {
    for (Metric metric : kMetrics) {
        KnnCase c;
        c.metric = metric;
        c.n = (int64_t(1) << 21) + 5;
        c.q = 1100;
        c.d = 3;
        c.data = Vectors::Integers;
        SCOPED_TRACE(c.describe());
        KnnData data(c);
        const KnnResult result = data.run(handle(), nullptr, 0xFF);
        ASSERT_TRUE(data.check(result, 8));
        // More than 2^31 distances in one tile, if the plan takes them.
        if (hasFreeMemory(size_t(16) << 30)) {
            data.options().maxScratch = size_t(12) << 30;
            ASSERT_TRUE(result == data.run(handle(), nullptr, 0xFF));
        }
    }
}

/// q k = 2.6e9 results.
TEST_F(FlatKnnLarge, MoreThanTwoTo31Results) {
    if (!hasFreeMemory(size_t(36) << 30)) {
        GTEST_SKIP() << "needs 36 GiB of free GPU memory";
    }
    for (Metric metric : kMetrics) {
        KnnCase c;
        c.metric = metric;
        c.n = 1 << 16;
        c.k = int(c.n);
        c.q = 40000;
        c.d = 2;
        c.data = Vectors::Integers;
        SCOPED_TRACE(c.describe());
        const KnnData data(c);
        FlatKnnProblem p = data.problem();
        const DeviceBuffer<float> outDistances(c.q * c.k);
        const DeviceBuffer<int64_t> outIds(c.q * c.k);
        p.outDistances = outDistances.data();
        p.outIds = outIds.data();
        const DeviceBuffer<uint8_t> scratch(
                flatKnnWorkspaceBytes(p, size_t(1) << 30));
        runFlatKnn(p, {scratch.data(), scratch.size()}, handle(), nullptr);
        for (int64_t query : {int64_t(0), (int64_t(1) << 15) + 1, c.q - 1}) {
            std::vector<float> distances(c.k);
            std::vector<int64_t> ids(c.k);
            BITS_CUDA_CHECK(cudaMemcpy(
                    distances.data(),
                    outDistances.data() + query * c.k,
                    c.k * sizeof(float),
                    cudaMemcpyDeviceToHost));
            BITS_CUDA_CHECK(cudaMemcpy(
                    ids.data(),
                    outIds.data() + query * c.k,
                    c.k * sizeof(int64_t),
                    cudaMemcpyDeviceToHost));
            ASSERT_TRUE(data.checkQuery(query, distances.data(), ids.data()))
                    << "query " << query;
        }
    }
}

/// Results of a million and of 2^24, with much scratch and little.
TEST_F(FlatKnnLarge, MillionsOfResults) {
    if (!hasFreeMemory(size_t(6) << 30)) {
        GTEST_SKIP() << "needs 6 GiB of free GPU memory";
    }
    KnnCase c;
    c.n = (1 << 24) + 43;
    c.q = 2;
    c.d = 2;
    c.data = Vectors::Integers;
    for (int k : {1000000, int(c.n)}) {
        c.k = k;
        SCOPED_TRACE(c.describe());
        KnnData data(c);
        const KnnResult result = data.run(handle(), nullptr, 0xFF);
        ASSERT_TRUE(data.check(result, 1));
        data.options().maxScratch = kLeastScratch;
        ASSERT_TRUE(result == data.run(handle(), nullptr, 0xFF));
    }
}

/// Components 0 or 1, by a hash.
template <class T>
__global__ void fillFarKernel(T* vectors, int64_t count) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count;
         i += step) {
        vectors[i] = T(float((uint64_t(i) * 0x9E3779B97F4A7C15ull) >> 63));
    }
}

template <class T>
__global__ void fillConstantKernel(T* vector, int d, float first, float rest) {
    for (int i = threadIdx.x; i < d; i += blockDim.x) {
        vector[i] = T(i == 0 ? first : rest);
    }
}

/// n d > 2^32 components. All vectors are far from the queries, save a few
/// planted ones at known and exact distances.
template <class T>
void expectPlanted(cublasHandle_t handle, DataType type, int64_t q) {
    constexpr int kPlanted = 64;
    const int d = 1024;
    const int64_t n = (int64_t(1) << 22) + 3;
    DeviceBuffer<T> vectors(size_t(n) * d);
    fillFarKernel<<<4096, 256>>>(vectors.data(), n * d);

    // Places at both ends, around 2^31 / d, and anywhere.
    std::vector<int64_t> places = {
            0, n - 1, (int64_t(1) << 21) - 1, int64_t(1) << 21, 1 << 20};
    std::mt19937 random(5);
    while (places.size() < kPlanted) {
        const int64_t place = random() % n;
        if (std::find(places.begin(), places.end(), place) == places.end()) {
            places.push_back(place);
        }
    }
    std::shuffle(places.begin(), places.end(), random);
    // The first component of planted vector i is i / 2 too high: pairs tie.
    std::vector<Ranked> want;
    for (int i = 0; i < kPlanted; ++i) {
        const float off = float(i / 2);
        fillConstantKernel<<<1, 256>>>(
                vectors.data() + places[i] * d, d, 3 + off, 3.f);
        want.push_back({double(off) * off, places[i]});
    }
    want = topK(want, kPlanted, false);
    DeviceBuffer<T> queries(q * d);
    for (int64_t i = 0; i < q; ++i) {
        fillConstantKernel<<<1, 256>>>(queries.data() + i * d, d, 3.f, 3.f);
    }
    BITS_CUDA_CHECK(cudaGetLastError());

    const int k = 50;
    DeviceBuffer<float> outDistances(q * k, 0xA5);
    DeviceBuffer<int64_t> outIds(q * k, 0xA5);
    FlatKnnProblem p;
    p.dataType = type;
    p.numVectors = n;
    p.numQueries = q;
    p.d = d;
    p.k = k;
    p.vectors = vectors.data();
    p.queries = queries.data();
    p.outDistances = outDistances.data();
    p.outIds = outIds.data();
    p.device.multiprocessors = multiprocessorCount();
    for (SearchMode mode : {SearchMode::Certified, SearchMode::Plain}) {
        p.mode = mode;
        DeviceBuffer<uint8_t> scratch(
                flatKnnWorkspaceBytes(p, size_t(1) << 30));
        runFlatKnn(p, {scratch.data(), scratch.size()}, handle, nullptr);
        const auto distances = outDistances.download();
        const auto ids = outIds.download();
        for (int64_t i = 0; i < q * k; ++i) {
            ASSERT_EQ(ids[i], want[i % k].id)
                    << "place " << i << ", q=" << q << " mode " << int(mode);
            ASSERT_EQ(distances[i], want[i % k].key) << "place " << i;
        }
    }
}

TEST_F(FlatKnnLarge, MoreThanTwoTo32Components) {
    if (!hasFreeMemory(size_t(18) << 30)) {
        GTEST_SKIP() << "needs 18 GiB of free GPU memory";
    }
    for (int64_t q : {2, 40}) {
        expectPlanted<float>(handle(), DataType::Float32, q);
        expectPlanted<__half>(handle(), DataType::Float16, q);
        expectPlanted<__nv_bfloat16>(handle(), DataType::BFloat16, q);
    }
}

} // namespace
} // namespace faiss_bits::test
