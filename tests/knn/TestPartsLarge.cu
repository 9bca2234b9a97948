/// More vectors than 2^31.

#include <algorithm>

#include <cuda_fp16.h>

#include "kernels/knn/FlatKnnPlan.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/knn/KnnHarness.h"

namespace faiss_bits::test {
namespace {

class PartsLarge : public FlatKnnTest {};

/// 1000 .. 1511, exact in 16 bits and far from the queries at zero.
__host__ __device__ float farValue(int64_t vector) {
    return 1000.0f + float((uint64_t(vector) * 0x9E3779B97F4A7C15ull) >> 55);
}

__global__ void fillKernel(__half* vectors, int64_t n, int d) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n;
         i += step) {
        for (int c = 0; c < d; ++c) {
            vectors[i * d + c] = __float2half(farValue(i));
        }
    }
}

struct Planted {
    int64_t id;
    float value; // of every component
};

/// Vectors around the ends of parts and of 32 bits, in pairs that tie.
std::vector<Planted> plantedOf(int64_t n, int64_t partVectors) {
    const int64_t two31 = int64_t(1) << 31;
    std::vector<int64_t> ids = {
            0,
            1,
            partVectors - 1,
            partVectors,
            partVectors + 1,
            two31 - 33,
            two31 - 2,
            two31 - 1,
            two31,
            two31 + 1,
            two31 + 500,
            n - 2,
            n - 1};
    std::vector<Planted> planted;
    for (size_t i = 0; i < ids.size(); ++i) {
        // The greatest ids are nearest.
        planted.push_back({ids[i], float(1 + (ids.size() - i) / 2)});
    }
    return planted;
}

/// What a query at zero finds: what was planted, and then the nearest of the
/// rest, which tie, by their ids.
std::vector<Ranked> wantedOf(
        const std::vector<Planted>& planted,
        const std::vector<uint32_t>& allowed,
        int d,
        int k) {
    const auto isAllowed = [&](int64_t id) {
        return allowed.empty() || (allowed[id / 32] >> id % 32 & 1);
    };
    std::vector<Ranked> all;
    for (const Planted& one : planted) {
        if (isAllowed(one.id)) {
            all.push_back({double(d) * one.value * one.value, one.id});
        }
    }
    for (int64_t i = 0; int(all.size()) < k; ++i) {
        const bool isPlanted = std::any_of(
                planted.begin(), planted.end(), [&](const Planted& one) {
                    return one.id == i;
                });
        if (!isPlanted && isAllowed(i) && farValue(i) == 1000.0f) {
            all.push_back({double(d) * 1000 * 1000, i});
        }
    }
    return topK(all, k, false);
}

TEST_F(PartsLarge, MoreThanTwoTo31Vectors) {
    if (!hasFreeMemory(size_t(12) << 30)) {
        GTEST_SKIP() << "needs 12 GiB of free GPU memory";
    }
    const int d = 2;
    const int64_t n = (int64_t(1) << 31) + 1000;
    const int k = 20;
    DeviceBuffer<__half> vectors(size_t(n) * d);
    fillKernel<<<4096, 256>>>(vectors.data(), n, d);

    FlatKnnProblem p;
    p.dataType = DataType::Float16;
    p.numVectors = n;
    p.d = d;
    p.k = k;
    p.vectors = vectors.data();
    p.device.multiprocessors = multiprocessorCount();
    p.numQueries = 1;
    const PartsPlan parts = planParts(p, size_t(1) << 30);
    ASSERT_EQ(parts.parts, 2);
    const std::vector<Planted> planted = plantedOf(n, parts.partVectors);
    for (const Planted& one : planted) {
        const std::vector<__half> value(d, __float2half(one.value));
        BITS_CUDA_CHECK(cudaMemcpy(
                vectors.data() + one.id * d,
                value.data(),
                d * sizeof(__half),
                cudaMemcpyHostToDevice));
    }
    // Every third word of them.
    std::vector<uint32_t> some((n + 31) / 32);
    for (size_t w = 0; w < some.size(); w += 3) {
        some[w] = 0xAAAAAAAAu;
    }
    const DeviceBuffer<uint32_t> allowed(some);
    for (int64_t q : {1, 20}) {
        for (bool isFiltered : {false, true}) {
            SCOPED_TRACE(
                    "q=" + std::to_string(q) +
                    " filtered=" + std::to_string(isFiltered));
            const std::vector<Ranked> want = wantedOf(
                    planted, isFiltered ? some : std::vector<uint32_t>(), d, k);
            const DeviceBuffer<__half> queries(
                    std::vector<__half>(q * d, __float2half(0.0f)));
            DeviceBuffer<float> outDistances(q * k, 0xA5);
            DeviceBuffer<int64_t> outIds(q * k, 0xA5);
            p.numQueries = q;
            p.allowedBits = isFiltered ? allowed.data() : nullptr;
            p.queries = queries.data();
            p.outDistances = outDistances.data();
            p.outIds = outIds.data();
            const DeviceBuffer<uint8_t> scratch(
                    flatKnnWorkspaceBytes(p, size_t(1) << 30));
            runFlatKnn(p, {scratch.data(), scratch.size()}, handle(), nullptr);
            const auto distances = outDistances.download();
            const auto ids = outIds.download();
            for (int64_t i = 0; i < q * k; ++i) {
                ASSERT_EQ(ids[i], want[i % k].id) << "place " << i;
                ASSERT_EQ(distances[i], want[i % k].key) << "place " << i;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
