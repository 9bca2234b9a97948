/// Spreads of a block (kernels/device/SpreadSort.cuh, CrowdedSpread.cuh)
/// against the sorted entries.

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/CrowdedSpread.cuh"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

/// Who placed the entries.
enum Placed : uint32_t { ByNone, BySelect, ByCrowded };

template <int Threads, int Items, int SecondBins>
__global__ void __launch_bounds__(Threads) spreadKernel(
        const uint64_t* entries,
        uint32_t count,
        uint64_t limit,
        uint32_t k,
        uint32_t mostInBin,
        uint64_t* out,
        uint32_t* timesPut,
        uint32_t* placed) {
    using Spread = BlockCrowdedSpread<Threads, Items, SecondBins>;
    __shared__ typename Spread::SharedStorage shared;
    extern __shared__ uint64_t other[];
    const auto put = [&](uint32_t place, uint64_t entry) {
        out[place] = entry;
        atomicAdd(&timesPut[place], 1);
    };
    const bool isDone = Spread{shared}.select(
            entries, int(count), limit, int(k), mostInBin, other, put);
    const bool isCrowdedDone = !isDone &&
            Spread{shared}.selectCrowded(entries, count, limit, k, other, put);
    if (threadIdx.x == 0) {
        *placed = isDone ? BySelect : isCrowdedDone ? ByCrowded : ByNone;
    }
}

template <int Threads, int Items, int SecondBins>
Placed spread(
        const std::vector<uint64_t>& entries,
        uint64_t limit,
        uint32_t k,
        uint32_t mostInBin) {
    const DeviceBuffer<uint64_t> onDevice(entries);
    const DeviceBuffer<uint64_t> out(k);
    const DeviceBuffer<uint32_t> timesPut(k, 0);
    const DeviceBuffer<uint32_t> placed(1);
    const int words =
            BlockCrowdedSpread<Threads, Items, SecondBins>::otherWords(int(k));
    spreadKernel<Threads, Items, SecondBins><<<1, Threads, 8 * words>>>(
            onDevice.data(),
            uint32_t(entries.size()),
            limit,
            k,
            mostInBin,
            out.data(),
            timesPut.data(),
            placed.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    const Placed by = Placed(placed.download()[0]);
    if (by != ByNone) {
        std::vector<uint64_t> best = entries;
        std::sort(best.begin(), best.end());
        best.resize(k);
        EXPECT_EQ(out.download(), best);
        EXPECT_EQ(timesPut.download(), std::vector<uint32_t>(k, 1));
    }
    return by;
}

/// By blocks of every number of threads that the kernels have.
void expectPlaced(
        const std::vector<uint64_t>& entries,
        uint32_t k,
        Placed by,
        uint64_t limit = kNoEntry - 1,
        uint32_t mostInBin = 48) {
    SCOPED_TRACE(
            "count = " + std::to_string(entries.size()) +
            ", k = " + std::to_string(k));
    EXPECT_EQ((spread<64, 4, 128>(entries, limit, k, mostInBin)), by);
    EXPECT_EQ((spread<128, 4, 256>(entries, limit, k, mostInBin)), by);
    EXPECT_EQ((spread<256, 8, 2048>(entries, limit, k, mostInBin)), by);
    EXPECT_EQ((spread<512, 4, 512>(entries, limit, k, mostInBin)), by);
    EXPECT_EQ((spread<1024, 4, 2048>(entries, limit, k, mostInBin)), by);
}

/// Of one entry a column, from `firstColumn` on, in any order.
std::vector<uint64_t> entriesOf(
        uint32_t count,
        const std::function<uint32_t(uint32_t)>& keyOf,
        uint32_t firstColumn = 0) {
    std::vector<uint64_t> entries(count);
    for (uint32_t i = 0; i < count; ++i) {
        entries[i] = uint64_t(keyOf(i)) << 32 | (firstColumn + i);
    }
    std::shuffle(entries.begin(), entries.end(), std::mt19937(count));
    return entries;
}

uint32_t keyOf(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

class SpreadSort : public GpuTest {};

/// Keys that so many entries have each, in columns next to each other or, as in
/// saw teeth, far apart. Every bin has one key.
TEST_F(SpreadSort, EqualKeys) {
    for (const uint32_t equal : {16, 17, 48, 49, 128, 129, 500, 1000, 2000}) {
        const uint32_t values = 2000 / equal;
        const auto runs = entriesOf(values * equal, [&](uint32_t i) {
            return 0x80000000u + i / equal * 0x01000000u;
        });
        const auto teeth = entriesOf(values * equal, [&](uint32_t i) {
            return 0x80000000u + i % values * 0x01000000u;
        });
        for (const uint32_t k : {1, 100, 257, 1063, 1900}) {
            const Placed by = equal <= 48 || equal >= k ? BySelect : ByCrowded;
            expectPlaced(runs, k, by);
            expectPlaced(teeth, k, by);
        }
        const uint32_t all = values * equal;
        expectPlaced(
                teeth, all, equal <= 48 || equal == all ? BySelect : ByCrowded);
    }
}

/// Two keys next to each other in every bin, and as many columns as there are.
TEST_F(SpreadSort, SmallTwoKeysOfABin) {
    const auto entries = entriesOf(
            1800,
            [](uint32_t i) {
                return 0xBF000000u + i % 9 * 0x00200000u + (i / 9 & 1);
            },
            0xFFFFF000u - 1800);
    for (const uint32_t k : {300, 1063, 1800}) {
        expectPlaced(entries, k, ByCrowded);
    }
}

/// The best lie far closer together than the range of all is wide, several
/// times over, and some of them have one key: rounds.
TEST_F(SpreadSort, ClustersOfClusters) {
    const auto entries = entriesOf(2400, [](uint32_t i) {
        return i < 3     ? i
                : i < 60 ? 0x20000000u + i
                : i % 3  ? 0x90000000u + (i % 5 == 0 ? 0 : i)
                         : 0xA0000000u + (i % 7 == 0 ? 9 : i * 0x100u);
    });
    for (const uint32_t k : {200, 900, 1700, 2400}) {
        expectPlaced(entries, k, ByCrowded);
    }
}

/// Equal keys in few columns, and one of them far behind: their bin of the
/// second kind is crowded.
TEST_F(SpreadSort, EqualKeysInFewColumns) {
    auto entries = entriesOf(
            1500,
            [](uint32_t i) { return 0x80000000u + i % 3 * 0x1000u; },
            1000);
    entries.push_back(uint64_t(0x80000000u) << 32 | 0xF0000000u);
    for (const uint32_t k : {502, 1063, 1501}) {
        expectPlaced(entries, k, ByCrowded);
    }
}

/// Numbers of a normal distribution, half of a row: most bins are for numbers
/// next to zero.
TEST_F(SpreadSort, BothSigns) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    const auto entries =
            entriesOf(2431, [&](uint32_t) { return keyOf(normal(random)); });
    for (const uint32_t k : {1203, 2000, 2431}) {
        expectPlaced(entries, k, ByCrowded);
    }
}

TEST_F(SpreadSort, NanIsLast) {
    const auto entries = entriesOf(1000, [](uint32_t i) {
        return i % 3 ? keyOf(float(i % 40)) : kNanKey;
    });
    // 17 to 34 of each number, which are 666, and NaN behind them.
    for (const uint32_t k : {667, 900, 1000}) {
        expectPlaced(entries, k, ByCrowded);
    }
}

/// What is above the limit takes no part.
TEST_F(SpreadSort, Limit) {
    const auto entries = entriesOf(3000, [](uint32_t i) {
        return 0x80000000u + i % 10 * 0x01000000u;
    });
    const uint64_t limit = uint64_t(0x83000000u) << 32 | 1503;
    expectPlaced(entries, 1050, ByCrowded, limit);
    expectPlaced(entries, 1000, ByCrowded, limit);
    expectPlaced(entries, 300, BySelect, limit);
}

/// Up to 128 entries are compared with each other.
TEST_F(SpreadSort, MostInBin) {
    for (const uint32_t equal : {128, 129}) {
        const auto entries = entriesOf(900, [&](uint32_t i) {
            return 0x80000000u + i / equal * 0x01000000u;
        });
        expectPlaced(
                entries,
                256,
                equal <= 128 ? BySelect : ByCrowded,
                kNoEntry - 1,
                128);
    }
}

/// Far more than there are bins, of which few are wanted.
TEST_F(SpreadSort, ManyEntries) {
    const auto entries = entriesOf(100000, [](uint32_t i) {
        return 0x80000000u + (i % 600 ? 0x01000000u : 0);
    });
    expectPlaced(entries, 100, BySelect);
    expectPlaced(entries, 400, ByCrowded);
}

} // namespace
} // namespace faiss_bits::test
