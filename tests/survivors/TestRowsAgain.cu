/// The policy that does a misled row again, for a source that has no keys in
/// memory: here entries are made from their row and column.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/Hash.h"
#include "kernels/device/Narrow.cuh"
#include "kernels/survivors/FinishRows.cuh"
#include "kernels/survivors/SurvivorSort.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

constexpr int kThreads = 512;
constexpr uint32_t kColumns = 50000;

struct MadeParams : FinishParams {
    uint32_t* timesAgain = nullptr; // [rows]
};

/// Keys with many ties, between 0 and 4095.
__host__ __device__ uint32_t keyOf(uint32_t row, uint32_t column) {
    uint32_t x = (row * 50021u + column) * 0x9E3779B1u;
    x = (x ^ (x >> 15)) * 0x2C1B3C6Du;
    return (x ^ (x >> 12)) % 4096;
}

struct MakeAgain {
    using Params = MadeParams;
    using Narrow = BlockNarrow<kThreads>;
    using SharedStorage = Narrow::SharedStorage;

    __device__ static bool isNeeded(const Params& p, uint32_t row) {
        return p.counts[row] < uint32_t(p.k) || p.counts[row] > p.capacity;
    }

    __device__ static void run(
            SharedStorage& shared,
            const Params& p,
            uint32_t row) {
        __syncthreads();
        const auto forEach = [&](auto take) {
            for (uint32_t c = threadIdx.x; c < kColumns; c += kThreads) {
                take(makeEntry(orderedKey(float(keyOf(row, c))), c));
            }
        };
        const uint64_t limit = Narrow{shared}.limit(forEach, p.k, p.capacity);
        if (threadIdx.x == 0) {
            p.counts[row] = 0;
            p.limits[row] = limit;
            ++p.timesAgain[row];
        }
        __threadfence_block();
        __syncthreads();
        forEach([&](uint64_t entry) {
            if (entry <= limit) {
                const uint32_t at = atomicAdd(p.counts + row, 1u);
                p.survivors[size_t(row) * p.capacity + at] = entry;
            }
        });
        __threadfence_block();
        __syncthreads();
    }
};

class RowsAgain : public GpuTest {};

TEST_F(RowsAgain, ASourceWithoutKeysBringsItsOwn) {
    constexpr int64_t kRows = 6;
    constexpr int64_t kCapacity = 3000;
    constexpr int k = 400;
    // Too few, too many, none, and lists that are right.
    std::vector<uint32_t> counts = {3, 100000, 0, 400, 3000, 2999};
    std::vector<uint64_t> entries(kRows * kCapacity, 0);
    std::vector<std::vector<std::pair<uint32_t, uint32_t>>> best(kRows);
    for (uint32_t r = 0; r < kRows; ++r) {
        for (uint32_t c = 0; c < kColumns; ++c) {
            best[r].push_back({keyOf(r, c), c});
        }
        std::sort(best[r].begin(), best[r].end());
        for (uint32_t i = 0; r >= 3 && i < counts[r]; ++i) {
            const float key = float(best[r][counts[r] - 1 - i].first);
            uint32_t bits;
            std::memcpy(&bits, &key, 4);
            entries[r * kCapacity + i] = uint64_t(bits | 0x80000000u) << 32 |
                    best[r][counts[r] - 1 - i].second;
        }
    }
    const DeviceBuffer<uint64_t> deviceEntries(entries);
    const DeviceBuffer<uint32_t> deviceCounts(counts);
    const DeviceBuffer<uint64_t> limits(
            std::vector<uint64_t>(kRows, ~uint64_t(0) - 1));
    const DeviceBuffer<uint32_t> again(std::vector<uint32_t>(kRows, 0));
    const DeviceBuffer<float> keys(kRows * k);
    const DeviceBuffer<int64_t> ids(kRows * k);

    SurvivorOutput output;
    output.k = k;
    output.outKeys = keys.data();
    output.outIds = ids.data();
    MadeParams p;
    static_cast<ResultParams&>(p) = makeResultParams(output, kColumns);
    p.survivors = deviceEntries.data();
    p.counts = deviceCounts.data();
    p.limits = limits.data();
    p.timesAgain = again.data();
    p.capacity = kCapacity;
    p.staged = kCapacity;
    launchFinishKernel<float, MakeAgain, kThreads, 512>(p, kRows, nullptr);

    const std::vector<float> gotKeys = keys.download();
    const std::vector<int64_t> gotIds = ids.download();
    for (int64_t r = 0; r < kRows; ++r) {
        for (int i = 0; i < k; ++i) {
            ASSERT_EQ(gotIds[r * k + i], best[r][i].second) << r << " " << i;
            ASSERT_EQ(gotKeys[r * k + i], float(best[r][i].first));
        }
    }
    EXPECT_EQ(again.download(), (std::vector<uint32_t>{1, 1, 1, 0, 0, 0}));
}

} // namespace
} // namespace faiss_bits::test
