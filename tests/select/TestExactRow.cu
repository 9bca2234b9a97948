/// The exact limit of a row: any keys, one block or a cluster of them.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "kernels/select/threshold/ExactRow.cuh"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/select/ThresholdPlanOf.h"

namespace faiss_bits::test {
namespace {

constexpr int kThreads = 512;
using Tile = KeyTile<float, false>;
using Exact = ExactRow<Tile, kThreads>;

struct ExactCase {
    KeySource source;
    const uint64_t* entries = nullptr; // of the columns, in place of the keys
    uint32_t wanted = 0;
    uint32_t room = 0;
    uint32_t parts = 1;
    uint64_t* limits = nullptr; // [parts]
};

__global__ void __launch_bounds__(kThreads) exactKernel(const ExactCase c) {
    __shared__ typename Exact::SharedStorage shared;
    __shared__ uint32_t sums[Exact::kBins];
    const auto limitOf = [&](uint32_t begin, uint32_t end, const auto& team) {
        return c.entries
                ? Exact{shared}.limitOfEntries(
                          c.entries + begin,
                          end - begin,
                          c.source.cols,
                          c.wanted,
                          c.room,
                          team)
                : Exact{shared}.limit(
                          c.source, 0, begin, end, c.wanted, c.room, team);
    };
    uint64_t limit = 0;
    if (c.parts == 0) {
        limit = limitOf(0, c.source.cols, RowAlone());
    } else {
        const RowOfCluster<kThreads> team(sums, c.parts);
        const uint32_t tile = kThreads * Tile::kItems;
        const uint32_t part =
                ((c.source.cols - 1) / tile / team.blocks + 1) * tile;
        const uint32_t begin = min(team.rank * part, c.source.cols);
        const uint32_t end = min(begin + part, c.source.cols);
        limit = limitOf(begin, end, team);
        // Nobody leaves while others read its sums.
        team.inStep();
    }
    if (threadIdx.x == 0) {
        c.limits[blockIdx.x] = limit;
    }
}

/// As orderedKey and makeEntry.
uint64_t entryOf(float key, uint32_t column) {
    uint32_t bits = 0;
    key += 0.0f;
    std::memcpy(&bits, &key, 4);
    const uint32_t ordered = std::isnan(key) ? ~0u
            : (bits >> 31) != 0              ? ~bits
                                             : bits | 0x80000000u;
    return uint64_t(ordered) << 32 | column;
}

class ExactRows : public GpuTest {
   protected:
    /// parts = 0: one block that knows of no cluster.
    static std::vector<uint64_t> limitsOf(ExactCase c) {
        const unsigned blocks = std::max(c.parts, 1u);
        DeviceBuffer<uint64_t> limits(blocks, 0xCD);
        c.limits = limits.data();
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(blocks);
        config.blockDim = dim3(kThreads);
        cudaLaunchAttribute cluster = {};
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim = {blocks, 1, 1};
        config.attrs = &cluster;
        config.numAttrs = c.parts > 1 ? 1 : 0;
        BITS_CUDA_CHECK(cudaLaunchKernelEx(&config, exactKernel, c));
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        return limits.download();
    }

    static void expectLimits(const std::vector<float>& keys, uint32_t parts) {
        const DeviceBuffer<float> device(keys);
        const uint32_t cols = uint32_t(keys.size());
        std::vector<uint64_t> entries;
        for (uint32_t c = 0; c < cols; ++c) {
            entries.push_back(entryOf(keys[c], c));
        }
        const DeviceBuffer<uint64_t> deviceEntries(entries);
        std::sort(entries.begin(), entries.end());
        for (const uint32_t wanted : {1u, cols / 2 + 1, cols}) {
            for (const uint32_t more : {0u, wanted / 10, cols}) {
                // Key by key, four at a time, entries.
                for (const int way : {0, 1, 2}) {
                    ExactCase c;
                    c.source.keys = device.data();
                    c.source.cols = cols;
                    c.source.vectorLoads = way == 1;
                    c.entries = way == 2 ? deviceEntries.data() : nullptr;
                    c.wanted = wanted;
                    c.room = wanted + more;
                    c.parts = parts;
                    const std::vector<uint64_t> limits = limitsOf(c);
                    for (const uint64_t limit : limits) {
                        ASSERT_EQ(limit, limits[0]);
                    }
                    const auto upTo =
                            std::upper_bound(
                                    entries.begin(), entries.end(), limits[0]) -
                            entries.begin();
                    ASSERT_GE(upTo, wanted) << cols << " columns";
                    ASSERT_LE(upTo, wanted + more) << cols << " columns";
                    ASSERT_NE(limits[0] >> 32, kZeroKey - 1);
                }
            }
        }
    }
};

TEST_F(ExactRows, AnyKeysAnyBlocks) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<std::function<float(uint32_t)>> kinds = {
            [&](uint32_t) { return uniform(random); },
            [](uint32_t) { return 0.5f; },
            [](uint32_t c) { return float(c); },
            [](uint32_t c) { return c % 2 ? -0.0f : 0.0f; },
            [](uint32_t c) { return c % 3 ? 0.0f : -1e-40f; },
            [&](uint32_t c) { return c % 5 ? NAN : uniform(random); },
            [&](uint32_t c) { return c % 4    ? inf
                                      : c % 8 ? -inf
                                              : NAN; },
            [&](uint32_t) {
                return std::ldexp(uniform(random), int(random() % 200) - 100);
            },
            [&](uint32_t) { return float(random() % 16); }};
    std::vector<uint32_t> teams = {0, 1};
    if (sharesRows()) {
        teams.insert(teams.end(), {2, 4, 8});
    }
    for (const uint32_t cols : {1u, 511u, 8193u, 70001u}) {
        for (const auto& kind : kinds) {
            std::vector<float> keys(cols);
            for (uint32_t c = 0; c < cols; ++c) {
                keys[c] = kind(c);
            }
            for (const uint32_t parts : teams) {
                expectLimits(keys, parts);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
}

TEST_F(ExactRows, Small) {
    std::vector<float> keys(40001);
    for (size_t i = 0; i < keys.size(); ++i) {
        keys[i] = i % 3 ? float(i * 7919 % 40009) : 0;
    }
    for (const uint32_t parts : {0u, 1u, sharesRows() ? 4u : 1u}) {
        expectLimits(keys, parts);
    }
}

} // namespace
} // namespace faiss_bits::test
