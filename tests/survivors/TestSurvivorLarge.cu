/// A list of more entries than an int counts.

#include <climits>

#include <gtest/gtest.h>

#include "kernels/device/Entry.cuh"
#include "kernels/survivors/SurvivorSort.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

constexpr uint64_t kCount = (uint64_t(1) << 31) + 1000003;
/// Prime, and no divisor of the count: every column comes once.
constexpr uint64_t kStep = 1000000007;
static_assert(kCount % kStep != 0);

/// Keys of 4096 neighbouring columns are equal, and keys grow with columns.
__global__ void makeEntriesKernel(uint64_t* entries) {
    for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x;
         i < kCount;
         i += uint64_t(gridDim.x) * blockDim.x) {
        const uint32_t column = uint32_t(i * kStep % kCount);
        entries[i] = makeEntry(orderedKey(float(column >> 12)), column);
    }
}

/// Counts places that do not hold their own number.
__global__ void checkKernel(
        const float* keys,
        const int64_t* ids,
        uint32_t k,
        unsigned long long* wrong) {
    for (uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x; i < k;
         i += uint64_t(gridDim.x) * blockDim.x) {
        if (ids[i] != int64_t(i) || keys[i] != float(uint32_t(i) >> 12)) {
            atomicAdd(wrong, 1ull);
        }
    }
}

class SurvivorLarge : public GpuTest {};

TEST_F(SurvivorLarge, MoreEntriesThanAnIntCounts) {
    constexpr int k = INT_MAX;
    const size_t scratchBytes = survivorSortWorkspaceBytes(1, kCount);
    if (!hasFreeMemory(scratchBytes + 8 * kCount + 12 * size_t(k))) {
        GTEST_SKIP() << "needs " << (scratchBytes >> 30) + 42
                     << " GiB of device memory";
    }
    const DeviceBuffer<uint64_t> entries(kCount);
    const DeviceBuffer<uint32_t> count(std::vector<uint32_t>{uint32_t(kCount)});
    const DeviceBuffer<float> keys(k);
    const DeviceBuffer<int64_t> ids(k);
    const DeviceBuffer<uint8_t> scratch(scratchBytes);
    const DeviceBuffer<unsigned long long> wrong(
            std::vector<unsigned long long>{0});
    makeEntriesKernel<<<4096, 256>>>(entries.data());
    BITS_CUDA_CHECK(cudaGetLastError());

    SurvivorList list;
    list.rows = 1;
    list.capacity = kCount;
    list.entries = entries.data();
    list.counts = count.data();
    list.columns = kCount;
    SurvivorOutput output;
    output.k = k;
    output.outKeys = keys.data();
    output.outIds = ids.data();
    runSurvivors(
            list, output, nullptr, {scratch.data(), scratch.size()}, nullptr);
    checkKernel<<<4096, 256>>>(keys.data(), ids.data(), k, wrong.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    EXPECT_EQ(wrong.download(), std::vector<unsigned long long>{0});
}

} // namespace
} // namespace faiss_bits::test
