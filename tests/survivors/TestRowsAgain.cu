/// The policy that does a misled row again, for a source that has no keys in
/// memory: here entries are made from their row and column.

#include <algorithm>
#include <cstring>
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

/// Lists that shared memory has no room for, on both sides of the length from
/// which on the best of them are found first; with room for k and one more, for
/// k alone, and for hardly any.
TEST_F(RowsAgain, LongListsAreCutBeforeTheyAreSorted) {
    constexpr int k = 400;
    const std::vector<uint32_t> counts = {
            400, 401, 500, 4095, 4096, 4097, 8193, 40000};
    const int64_t rows = int64_t(counts.size());
    const int64_t capacity = counts.back();
    std::vector<uint64_t> entries(rows * capacity, 0);
    std::vector<std::vector<uint64_t>> best(rows);
    for (uint32_t r = 0; r < rows; ++r) {
        for (uint32_t i = 0; i < counts[r]; ++i) {
            // Distinct columns in any order.
            const uint32_t column = (i * 7919u + r) % 1000003u;
            const float key = float(keyOf(r, i)) - 2048.0f;
            uint32_t bits;
            std::memcpy(&bits, &key, 4);
            bits = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
            entries[r * capacity + i] = uint64_t(bits) << 32 | column;
        }
        const auto first = entries.begin() + r * capacity;
        best[r].assign(first, first + counts[r]);
        std::sort(best[r].begin(), best[r].end());
    }
    const DeviceBuffer<uint64_t> deviceEntries(entries);
    const DeviceBuffer<uint32_t> deviceCounts(counts);
    for (const uint32_t staged : {10u, 400u, 401u, 500u, 4096u}) {
        const DeviceBuffer<float> keys(rows * k);
        const DeviceBuffer<int64_t> ids(rows * k);
        SurvivorOutput output;
        output.k = k;
        output.outKeys = keys.data();
        output.outIds = ids.data();
        FinishParams p;
        static_cast<ResultParams&>(p) = makeResultParams(output, 1000003);
        p.survivors = deviceEntries.data();
        p.counts = deviceCounts.data();
        p.capacity = uint32_t(capacity);
        p.staged = staged;
        launchFinishKernel<float, NoRowsAgain, kThreads, 512>(
                p, unsigned(rows), nullptr);
        const std::vector<int64_t> found = ids.download();
        for (int64_t r = 0; r < rows; ++r) {
            for (int i = 0; i < k; ++i) {
                ASSERT_EQ(found[r * k + i], int64_t(uint32_t(best[r][i])))
                        << "staged = " << staged << " row " << r << " " << i;
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
