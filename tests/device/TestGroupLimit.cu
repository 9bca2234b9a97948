/// The limit that a finish takes of the least keys of groups
/// (kernels/ivf/IvfGroupLimit.cuh), against the sorted keys.

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/ivf/IvfGroupLimit.cuh"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

constexpr uint32_t kMost = 12; // neighbours that warps find the limit of

template <int kThreads>
__global__ void limitKernel(
        const uint32_t* keys,
        uint32_t count,
        uint32_t k,
        uint32_t* limit) {
    using Limit = IvfGroupLimit<kThreads>;
    __shared__ typename Limit::Narrow::SharedStorage shared;
    const auto forEach = [&](auto take) {
        for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
            if (keys[i] != kNanKey) {
                take(makeEntry(keys[i], i));
            }
        }
    };
    *limit = Limit{shared}.of(forEach, k);
}

template <int kThreads>
uint32_t limitOf(const std::vector<uint32_t>& keys, uint32_t k) {
    const DeviceBuffer<uint32_t> onDevice(keys);
    const DeviceBuffer<uint32_t> limit(1);
    limitKernel<kThreads><<<1, kThreads>>>(
            onDevice.data(), uint32_t(keys.size()), k, limit.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    return limit.download()[0];
}

/// As many as there are to find are not above it; and few more, unless keys
/// are the same.
template <int kThreads>
void expectLimits(const std::vector<uint32_t>& keys, bool areDistinct) {
    std::vector<uint32_t> sorted;
    for (const uint32_t key : keys) {
        if (key != kNanKey) {
            sorted.push_back(key);
        }
    }
    std::sort(sorted.begin(), sorted.end());
    for (const uint32_t k : {1u, 2u, 9u, 10u, kMost, kMost + 1, 32u, 100u}) {
        if (sorted.empty()) {
            return;
        }
        const uint32_t limit = limitOf<kThreads>(keys, k);
        const size_t upTo =
                std::upper_bound(sorted.begin(), sorted.end(), limit) -
                sorted.begin();
        EXPECT_GE(upTo, std::min<size_t>(k, sorted.size())) << k;
        if (areDistinct) {
            // A thread has up to eight keys, of which the least is counted.
            EXPECT_LE(upTo, 8 * (2 * k + 8)) << k;
        }
    }
}

template <int kThreads>
void expectAll() {
    std::mt19937 random(kThreads);
    for (const uint32_t count : {1u, 5u, 12u, 40u, 511u, 1031u, 4000u}) {
        std::vector<uint32_t> keys(count);
        for (uint32_t i = 0; i < count; ++i) {
            keys[i] = i * 1000 + 7;
        }
        expectLimits<kThreads>(keys, true); // the least side by side
        std::shuffle(keys.begin(), keys.end(), random);
        expectLimits<kThreads>(keys, true);
        // One warp has all of the least, or one thread.
        for (const uint32_t apart : {uint32_t(kThreads / 32), 512u}) {
            auto some = keys;
            for (uint32_t i = 0; i < count; i += apart) {
                some[i] = i;
            }
            expectLimits<kThreads>(some, true);
        }
        // Few have a key.
        auto some = keys;
        for (uint32_t i = 0; i < count; ++i) {
            some[i] = i % 97 == 3 ? some[i] : kNanKey;
        }
        expectLimits<kThreads>(some, true);
        for (auto& key : some) {
            key = 5;
        }
        expectLimits<kThreads>(some, false);
        for (uint32_t i = 0; i < count; ++i) {
            some[i] = i % 3;
        }
        expectLimits<kThreads>(some, false);
    }
}

class GroupLimit : public GpuTest {};

TEST_F(GroupLimit, SmallOfABlock) {
    expectAll<512>();
    expectAll<256>();
    expectAll<128>();
}

} // namespace
} // namespace faiss_bits::test
