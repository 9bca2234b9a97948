/// The least entries of many, in the registers of a warp, held against a sort
/// on the host.

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/WarpList.cuh"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarpSize; // of a block, a list each

/// entries [warps, count], the entry of place i of a step by lane i % 32; out
/// [warps, 32 * kRows].
template <int kRows>
__global__ void addKernel(const uint64_t* entries, int count, uint64_t* out) {
    const int warp = (blockIdx.x * kThreads + threadIdx.x) / kWarpSize;
    const int lane = threadIdx.x % kWarpSize;
    WarpList<kRows> list;
    for (int first = 0; first < count; first += kWarpSize) {
        const int i = first + lane;
        list.add(i < count ? entries[int64_t(warp) * count + i] : kNoEntry);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        out[(int64_t(warp) * kRows + r) * kWarpSize + lane] = list.item(r);
    }
}

/// Lists of all warps of a block made one, that of a block: out
/// [blocks, 32 * kRows].
template <int kRows>
__global__ void joinKernel(const uint64_t* entries, int count, uint64_t* out) {
    __shared__ uint64_t lists[kWarps][kRows][kWarpSize];
    const int warp = threadIdx.x / kWarpSize;
    const int lane = threadIdx.x % kWarpSize;
    const uint64_t* mine =
            entries + (int64_t(blockIdx.x) * kWarps + warp) * count;
    WarpList<kRows> list;
    for (int first = 0; first < count; first += kWarpSize) {
        const int i = first + lane;
        list.add(i < count ? mine[i] : kNoEntry);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        lists[warp][r][lane] = list.item(r);
    }
    __syncthreads();
    if (warp != 0) {
        return;
    }
    for (int w = 1; w < kWarps; ++w) {
        for (int r = 0; r < kRows; ++r) {
            list.addSorted(lists[w][r][lane]);
        }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        out[(int64_t(blockIdx.x) * kRows + r) * kWarpSize + lane] =
                list.item(r);
    }
}

enum class Order {
    Random,
    Ascending,
    Descending,
    Equal,
    Teeth, // every step begins with the least so far
    FewDifferent,
    MostlyNone, // kNoEntry but for some
    Extremes,   // 0, kNoEntry and what is beside them
};

constexpr Order kOrders[] = {
        Order::Random,
        Order::Ascending,
        Order::Descending,
        Order::Equal,
        Order::Teeth,
        Order::FewDifferent,
        Order::MostlyNone,
        Order::Extremes};

std::vector<uint64_t> makeEntries(Order order, int count, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint64_t> entries(count);
    for (uint64_t& entry : entries) {
        entry = random();
    }
    constexpr uint64_t extremes[] = {0, 1, kNoEntry - 1, kNoEntry};
    switch (order) {
        case Order::Random:
            break;
        case Order::Ascending:
            std::sort(entries.begin(), entries.end());
            break;
        case Order::Descending:
            std::sort(entries.rbegin(), entries.rend());
            break;
        case Order::Equal:
            std::fill(entries.begin(), entries.end(), random());
            break;
        case Order::Teeth:
            std::sort(entries.rbegin(), entries.rend());
            for (int i = 0; i < count; i += kWarpSize) {
                std::sort(
                        entries.begin() + i,
                        entries.begin() + std::min(i + kWarpSize, count));
            }
            break;
        case Order::FewDifferent: // the halves of an entry both decide
            for (uint64_t& entry : entries) {
                entry = (entry % 3) << 32 | (entry >> 40) % 5;
            }
            break;
        case Order::MostlyNone:
            for (uint64_t& entry : entries) {
                entry = entry % 19 == 0 ? entry : kNoEntry;
            }
            break;
        case Order::Extremes:
            for (uint64_t& entry : entries) {
                entry = extremes[entry % 4];
            }
            break;
    }
    return entries;
}

/// The `size` least of `lists` lists together, by list of `count`.
std::vector<uint64_t> leastOf(
        const std::vector<uint64_t>& entries,
        size_t count,
        size_t size) {
    std::vector<uint64_t> least;
    for (size_t first = 0; first + count <= entries.size(); first += count) {
        std::vector<uint64_t> list(
                entries.begin() + first, entries.begin() + first + count);
        list.resize(std::max(count, size), kNoEntry);
        std::sort(list.begin(), list.end());
        least.insert(least.end(), list.begin(), list.begin() + size);
    }
    return least;
}

constexpr int kBlocks = 3;

template <int kRows>
void expectLeast(Order order, int count) {
    SCOPED_TRACE(
            ::testing::Message() << kRows << " rows, order " << int(order)
                                 << ", " << count << " entries");
    constexpr size_t kSize = size_t(kRows) * kWarpSize;
    std::vector<uint64_t> entries;
    for (int warp = 0; warp < kBlocks * kWarps; ++warp) {
        const auto list = makeEntries(order, count, 1000 * count + warp);
        entries.insert(entries.end(), list.begin(), list.end());
    }
    const DeviceBuffer<uint64_t> there(entries);
    DeviceBuffer<uint64_t> lists(kBlocks * kWarps * kSize, 0);
    addKernel<kRows><<<kBlocks, kThreads>>>(there.data(), count, lists.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    EXPECT_EQ(lists.download(), leastOf(entries, count, kSize));

    DeviceBuffer<uint64_t> joined(kBlocks * kSize, 0);
    joinKernel<kRows>
            <<<kBlocks, kThreads>>>(there.data(), count, joined.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    EXPECT_EQ(joined.download(), leastOf(entries, count * kWarps, kSize));
}

class WarpLists : public GpuTest {};

TEST_F(WarpLists, SmallEveryCountAndOrder) {
    for (Order order : kOrders) {
        for (int count : {1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000}) {
            expectLeast<1>(order, count);
            expectLeast<2>(order, count);
            expectLeast<4>(order, count);
        }
    }
}

/// Nothing was added.
TEST_F(WarpLists, SmallEmptyList) {
    DeviceBuffer<uint64_t> lists(kWarps * 4 * kWarpSize, 0);
    addKernel<4><<<1, kThreads>>>(nullptr, 0, lists.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    for (uint64_t entry : lists.download()) {
        ASSERT_EQ(entry, kNoEntry);
    }
}

/// The lanes at which the least of all comes, and the greatest of the list.
TEST_F(WarpLists, EveryLane) {
    constexpr int count = 5 * kWarpSize;
    std::vector<uint64_t> entries;
    for (int place = 0; place < kBlocks * kWarps * 13; ++place) {
        for (int i = 0; i < count; ++i) {
            entries.push_back(1000 + (i * 37) % count);
        }
        entries[entries.size() - count + place % count] = 5;
    }
    const int blocks = kBlocks * 13;
    const DeviceBuffer<uint64_t> there(entries);
    DeviceBuffer<uint64_t> lists(size_t(blocks) * kWarps * 2 * kWarpSize, 0);
    addKernel<2><<<blocks, kThreads>>>(there.data(), count, lists.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    EXPECT_EQ(lists.download(), leastOf(entries, count, 2 * kWarpSize));
}

} // namespace
} // namespace faiss_bits::test
