/// Spreads of a block (kernels/device/SpreadSort.cuh, StraightSpread.cuh)
/// against the sorted entries.

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/StraightSpread.cuh"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

/// Who placed the entries; Any: nobody has to, but what is placed is right.
enum Placed : uint32_t { ByNone, BySelect, ByStraight, Any };

template <int Threads, int Items>
__global__ void __launch_bounds__(Threads) spreadKernel(
        const uint64_t* entries,
        int count,
        uint64_t limit,
        int k,
        uint64_t* out,
        uint32_t* placed) {
    using Spread = BlockStraightSpread<Threads, Items>;
    __shared__ typename Spread::SharedStorage shared;
    extern __shared__ uint64_t other[];
    const auto put = [&](uint32_t place, uint64_t entry) {
        out[place] = entry;
    };
    const bool isDone =
            Spread{shared}.select(entries, count, limit, k, other, put);
    const bool isStraight = !isDone &&
            Spread{shared}.selectStraight(entries, count, limit, k, other, put);
    if (threadIdx.x == 0) {
        *placed = isDone ? BySelect : isStraight ? ByStraight : ByNone;
    }
}

template <int Threads, int Items>
Placed spread(
        const std::vector<uint64_t>& entries,
        uint64_t limit,
        uint32_t k) {
    const DeviceBuffer<uint64_t> onDevice(entries);
    const DeviceBuffer<uint64_t> out(k, 0);
    const DeviceBuffer<uint32_t> placed(1);
    const size_t words = k + BlockStraightSpread<Threads, Items>::kMaxBin;
    spreadKernel<Threads, Items><<<1, Threads, 8 * words>>>(
            onDevice.data(),
            int(entries.size()),
            limit,
            int(k),
            out.data(),
            placed.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    const Placed by = Placed(placed.download()[0]);
    if (by != ByNone) {
        std::vector<uint64_t> best = entries;
        std::sort(best.begin(), best.end());
        best.resize(k);
        EXPECT_EQ(out.download(), best);
    }
    return by;
}

/// By blocks of every number of threads that the kernels have.
void expectPlaced(
        const std::vector<uint64_t>& entries,
        uint32_t k,
        Placed by,
        uint64_t limit = kNoEntry - 1) {
    SCOPED_TRACE(
            "count = " + std::to_string(entries.size()) +
            ", k = " + std::to_string(k));
    for (const Placed found :
         {spread<64, 4>(entries, limit, k),
          spread<128, 4>(entries, limit, k),
          spread<256, 8>(entries, limit, k),
          spread<512, 4>(entries, limit, k),
          spread<1024, 4>(entries, limit, k)}) {
        EXPECT_TRUE(by == Any || found == by) << found;
    }
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

TEST_F(SpreadSort, DifferentKeys) {
    std::mt19937 random(34);
    const auto entries = entriesOf(
            1900, [&](uint32_t) { return 0x80000000u | (random() >> 8); });
    for (const uint32_t k : {1, 100, 257, 1063, 1899, 1900}) {
        expectPlaced(entries, k, BySelect);
    }
}

/// Keys that so many entries have each, in columns next to each other or, as in
/// saw teeth, far apart: up to 128 are compared with each other.
TEST_F(SpreadSort, EqualKeys) {
    for (const uint32_t equal : {16, 48, 127, 128, 129, 500, 1000, 2000}) {
        const uint32_t values = 2000 / equal;
        const auto runs = entriesOf(values * equal, [&](uint32_t i) {
            return 0x80000000u + i / equal * 0x01000000u;
        });
        const auto teeth = entriesOf(values * equal, [&](uint32_t i) {
            return 0x80000000u + i % values * 0x01000000u;
        });
        for (const uint32_t k : {1u, 100u, 257u, 1063u, values * equal}) {
            const Placed by = equal <= 128 || equal >= k ? BySelect : Any;
            expectPlaced(runs, k, by);
            expectPlaced(teeth, k, by);
        }
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
        expectPlaced(entries, k, Any);
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
        expectPlaced(entries, k, Any);
    }
}

/// Equal keys in few columns, and one of them far behind.
TEST_F(SpreadSort, EqualKeysInFewColumns) {
    auto entries = entriesOf(
            1500,
            [](uint32_t i) { return 0x80000000u + i % 3 * 0x1000u; },
            1000);
    entries.push_back(uint64_t(0x80000000u) << 32 | 0xF0000000u);
    for (const uint32_t k : {502, 1063, 1501}) {
        expectPlaced(entries, k, Any);
    }
}

/// Numbers of a normal distribution, half of a row: most bins of their bits are
/// for numbers next to zero.
TEST_F(SpreadSort, BothSigns) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    const auto entries =
            entriesOf(2431, [&](uint32_t) { return keyOf(normal(random)); });
    for (const uint32_t k : {1203, 2000, 2431}) {
        expectPlaced(entries, k, ByStraight);
    }
}

TEST_F(SpreadSort, NanIsLast) {
    const auto entries = entriesOf(1000, [](uint32_t i) {
        return i % 3 ? keyOf(float(i % 40)) : kNanKey;
    });
    for (const uint32_t k : {667, 900, 1000}) {
        expectPlaced(entries, k, Any);
    }
}

/// What is above the limit takes no part, and where that leaves fewer than k,
/// nobody may say that all are placed.
TEST_F(SpreadSort, Limit) {
    const auto entries = entriesOf(3000, [](uint32_t i) {
        return 0x80000000u + i % 10 * 0x01000000u;
    });
    const uint64_t limit = uint64_t(0x83000000u) << 32 | 1503;
    expectPlaced(entries, 1050, Any, limit);
    expectPlaced(entries, 1000, Any, limit);
    expectPlaced(entries, 300, BySelect, limit);
    expectPlaced(entries, 1052, ByNone, limit);
    expectPlaced(entries, 1, ByNone, 0x7FFFFFFFFFFFFFFF);
}

/// Far more than there are bins, of which few are wanted.
TEST_F(SpreadSort, ManyEntries) {
    const auto entries = entriesOf(100000, [](uint32_t i) {
        return 0x80000000u + (i % 600 ? 0x01000000u : 0);
    });
    expectPlaced(entries, 100, BySelect);
    expectPlaced(entries, 400, Any);
}

} // namespace
} // namespace faiss_bits::test
