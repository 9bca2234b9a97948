/// Buckets whose entries lie together (kernels/device/DrawnBinSort.cuh) against
/// the sorted entries.

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/DrawnBinSort.cuh"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

constexpr int kThreads = 512;
constexpr int kItems = 7;
using Sort = DrawnBinSort<kThreads, kItems>;

__global__ void __launch_bounds__(kThreads) drawnBinSortKernel(
        const uint64_t* entries,
        uint32_t count,
        uint64_t* out,
        uint32_t* isDone) {
    __shared__ typename Sort::SharedStorage shared;
    const bool done =
            Sort{shared}.sort(entries, count, [&](uint32_t place, uint64_t e) {
                out[place] = e;
            });
    if (threadIdx.x == 0) {
        *isDone = done;
    }
}

enum Expected { Done, NotDone, Any };

void expectSorted(std::vector<uint64_t> entries, Expected expected = Done) {
    SCOPED_TRACE("count = " + std::to_string(entries.size()));
    const DeviceBuffer<uint64_t> onDevice(entries);
    const DeviceBuffer<uint64_t> out(entries.size(), 0);
    const DeviceBuffer<uint32_t> isDone(1);
    drawnBinSortKernel<<<1, kThreads>>>(
            onDevice.data(),
            uint32_t(entries.size()),
            out.data(),
            isDone.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    const bool done = isDone.download()[0] != 0;
    EXPECT_TRUE(expected == Any || done == (expected == Done)) << done;
    if (done) {
        std::sort(entries.begin(), entries.end());
        EXPECT_EQ(out.download(), entries);
    } else {
        EXPECT_EQ(out.download(), std::vector<uint64_t>(entries.size(), 0));
    }
}

/// Of one entry a column, in any order or in that of columns.
std::vector<uint64_t> entriesOf(
        uint32_t count,
        const std::function<uint32_t(uint32_t)>& keyOf,
        bool isShuffled = true,
        uint32_t firstColumn = 0) {
    std::vector<uint64_t> entries(count);
    for (uint32_t i = 0; i < count; ++i) {
        entries[i] = uint64_t(keyOf(i)) << 32 | (firstColumn + i);
    }
    if (isShuffled) {
        std::shuffle(entries.begin(), entries.end(), std::mt19937(count));
    }
    return entries;
}

/// Both sides of what it takes, and of a turn of the threads.
const uint32_t kCounts[] = {1, 127, 128, 129, 511, 513, 2048, 3583, 3584};

class DrawnBinSortTest : public GpuTest {};

TEST_F(DrawnBinSortTest, SmallKeysOfEveryKind) {
    std::mt19937 random(39);
    for (const uint32_t count : kCounts) {
        const Expected expected = count < 128 ? NotDone : Done;
        for (const bool isShuffled : {false, true}) {
            const auto expectKeys =
                    [&](const std::function<uint32_t(uint32_t)>& keyOf) {
                        expectSorted(
                                entriesOf(count, keyOf, isShuffled), expected);
                        // The last columns that there can be.
                        expectSorted(
                                entriesOf(count, keyOf, isShuffled, ~count),
                                expected);
                    };
            expectKeys([](uint32_t) { return 0x80000000u; });
            expectKeys([](uint32_t) { return 0u; });
            expectKeys([](uint32_t) { return ~0u; });
            expectKeys([](uint32_t i) { return i; });
            expectKeys([](uint32_t i) { return ~i; });
            expectKeys([&](uint32_t) { return uint32_t(random()); });
        }
    }
}

/// Keys that so many entries have each, side by side or as teeth.
TEST_F(DrawnBinSortTest, EqualKeys) {
    for (const uint32_t count : {700, 2048, 3584}) {
        for (const uint32_t values : {2, 3, 5, 16, 31, 64, 100, 256, 512}) {
            for (const uint32_t gap : {1u, 0x00010000u, 0x007FFFFFu}) {
                SCOPED_TRACE(
                        std::to_string(values) + " values, " +
                        std::to_string(gap));
                for (const bool isShuffled : {false, true}) {
                    expectSorted(entriesOf(
                            count,
                            [&](uint32_t i) {
                                return 0x3F000000u + i % values * gap;
                            },
                            isShuffled));
                    expectSorted(entriesOf(
                            count,
                            [&](uint32_t i) {
                                return 0x3F000000u + i * values / count * gap;
                            },
                            isShuffled));
                }
            }
        }
    }
}

/// Entries that have one bin, as few lie far away among them: it gives up, or
/// sorts them.
TEST_F(DrawnBinSortTest, KeysFarAway) {
    for (const uint32_t far : {1, 2, 10, 100, 1000}) {
        const auto entries = entriesOf(3000, [&](uint32_t i) {
            return i % 3000 < far ? 0xFF800000u - i : 0x80000000u + i / 600;
        });
        expectSorted(entries, Any);
    }
    // Each key as far away as all before it.
    expectSorted(entriesOf(3000, [](uint32_t i) { return 1u << i % 32; }), Any);
}

} // namespace
} // namespace faiss_bits::test
