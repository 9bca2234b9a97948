#include "benchs/FlatData.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "benchs/common/Keys.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::bench {

namespace {

constexpr float kClusterWidth = 0.01f;
constexpr float kWideCluster = 0.1f;
constexpr uint64_t kFewVectors = 64;
constexpr float kFarOffset = 1e4f;
constexpr uint64_t kScales = 40;
constexpr uint64_t kNearCenters = 4;
constexpr float kNearWidth = 0x1p-22f;

/// Bits that look random (the finalizer of SplitMix64, Steele et al. 2014).
__device__ uint64_t mix(uint64_t z) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/// Component i of vector `vector` of a set, in (0, 1].
__device__ float component(uint64_t set, uint64_t vector, uint64_t i) {
    const uint64_t bits = mix(mix(mix(set) + vector) + i);
    return (float(bits >> 40) + 1) * 0x1p-24f;
}

/// Row `row` of rows in random order: each has another number below `rows`. A
/// cipher of four rounds (Luby and Rackoff 1988) over as many bits as `rows`
/// has, and again where that is no row.
__device__ uint64_t shuffled(uint64_t row, uint64_t rows) {
    const int half = (64 - __clzll(rows) + 1) / 2;
    const uint64_t mask = (uint64_t(1) << half) - 1;
    do {
        for (int round = 0; round < 4; ++round) {
            const uint64_t right = row & mask;
            row = right << half |
                    ((row >> half ^ mix(right + (uint64_t(round) << 40))) &
                     mask);
        }
    } while (row >= rows);
    return row;
}

/// Rows are uniform already; centers and the few vectors are those of set 0,
/// whatever the seed, so that queries have them too.
__global__ void changeRows(
        float* values,
        FlatData data,
        bool isQueries,
        int64_t rows,
        int d,
        int seed,
        uint64_t clusters) {
    const int64_t threads = int64_t(gridDim.x) * blockDim.x;
    for (int64_t at = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
         at < rows * d;
         at += threads) {
        const int64_t row = at / d;
        const int i = int(at % d);
        const uint64_t ofRow = mix(mix(uint64_t(seed)) + row);
        float& value = values[at];
        switch (data) {
            case FlatData::Uniform:
                break;
            case FlatData::Far:
                value += kFarOffset;
                break;
            case FlatData::Clusters:
                value = component(0, ofRow % kFlatClusters, i) +
                        2 * kClusterWidth * (value - 0.5f);
                break;
            case FlatData::Few:
                value = component(0, ofRow % kFewVectors, i);
                break;
            case FlatData::Equal:
                value = isQueries ? value : component(0, 0, i);
                break;
            case FlatData::Infinite:
                if (!isQueries && ofRow % 3 == 0 &&
                    i == int((ofRow >> 8) % uint64_t(d))) {
                    value = __int_as_float(0x7F800000);
                }
                break;
            case FlatData::Clustered:
            case FlatData::ClusteredSorted: {
                // Of clusters as large as each other, in their order.
                const uint64_t number = data == FlatData::Clustered
                        ? shuffled(uint64_t(row), uint64_t(rows))
                        : uint64_t(row);
                const uint64_t cluster = isQueries
                        ? ofRow % clusters
                        : number * clusters / uint64_t(rows);
                const float off = isQueries
                        ? value
                        : component(uint64_t(seed) + 1, number, i);
                value = component(0, cluster, i) +
                        2 * kWideCluster * (off - 0.5f);
                break;
            }
            case FlatData::Scales:
                value = ldexpf(value, -int(ofRow % kScales));
                break;
            case FlatData::Near:
                value = component(0, ofRow % kNearCenters, i) +
                        2 * kNearWidth * (value - 0.5f);
                break;
            case FlatData::Bits:
                value = value > 0.5f ? 1.0f : 0.0f;
                break;
        }
    }
}

} // namespace

const std::vector<std::string>& flatDataNames() {
    static const std::vector<std::string> names = {
            "uniform",
            "far",
            "clusters",
            "few",
            "equal",
            "infinite",
            "scales",
            "near",
            "bits",
            "clustered",
            "clustered_sorted"};
    return names;
}

FlatData flatDataOf(const std::string& name) {
    const auto& names = flatDataNames();
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
        std::string all;
        for (const std::string& one : names) {
            all += (all.empty() ? "" : ", ") + one;
        }
        throw std::invalid_argument(
                "--data is '" + name + "', not one of " + all);
    }
    return FlatData(at - names.begin());
}

std::string nameOf(FlatData data) {
    return flatDataNames().at(size_t(data));
}

void fillFlatData(
        float* values,
        FlatData data,
        bool isQueries,
        int64_t rows,
        int d,
        int seed,
        uint64_t clusters) {
    fillKeys(values, DataType::Float32, rows, d, Order::Random, seed);
    if (data == FlatData::Uniform || rows == 0) {
        return;
    }
    changeRows<<<2048, 256>>>(values, data, isQueries, rows, d, seed, clusters);
    BITS_CUDA_CHECK(cudaGetLastError());
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
}

} // namespace faiss_bits::bench
