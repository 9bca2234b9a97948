#pragma once

#include <algorithm>
#include <memory>
#include <ostream>
#include <vector>

#include <faiss/Index.h>

#include "faiss_bits/many/GpuIndexBitsReplicas.h"
#include "faiss_bits/many/GpuIndexBitsShards.h"
#include "tests/common/HardVectors.h"
#include "tests/flat/IndexHarness.h"

/// What the tests of indexes on several devices share.
namespace faiss_bits::test {

using gpu::DeviceList;
using gpu::GpuIndexBitsManyConfig;
using gpu::GpuIndexBitsReplicas;
using gpu::GpuIndexBitsShards;

inline int numDevices() {
    int count = 0;
    BITS_CUDA_CHECK(cudaGetDeviceCount(&count));
    return count;
}

/// 2, 3 and 4, as far as there are so many devices.
inline std::vector<int> severalDevices() {
    std::vector<int> counts;
    for (int devices = 2; devices <= std::min(4, numDevices()); ++devices) {
        counts.push_back(devices);
    }
    return counts;
}

/// Tests that want two devices or more; skipped by name where there is one.
class SeveralDevicesTest : public GpuTest {
   protected:
    std::string lack() const override {
        return numDevices() < 2 ? "one CUDA device" : "";
    }
};

/// Resources of part `part` in all tests; they stay until the process ends.
inline faiss::gpu::StandardGpuResources* partResources(int part) {
    static auto& all =
            *new std::vector<std::unique_ptr<faiss::gpu::StandardGpuResources>>;
    while (int(all.size()) <= part) {
        auto made = std::make_unique<faiss::gpu::StandardGpuResources>();
        made->setPinnedMemory(0);
        made->setTempMemory(size_t(128) << 20);
        all.push_back(std::move(made));
    }
    return all[part].get();
}

/// Parts in turn on the first `devices` devices.
inline DeviceList placesOf(int parts, int devices = 1) {
    DeviceList list;
    for (int part = 0; part < parts; ++part) {
        list.add(partResources(part), part % devices);
    }
    return list;
}

/// Of small tests: every addition is cut into as many pieces as there are
/// shards.
inline GpuIndexBitsManyConfig smallConfig(
        DataType storage = DataType::Float32) {
    GpuIndexBitsManyConfig config;
    config.useFloat16 = storage == DataType::Float16;
    config.useBFloat16 = storage == DataType::BFloat16;
    config.leastPiece = 1;
    return config;
}

/// Ways from part to part: together on a device, each apart, each apart through
/// the host. None may change a bit.
inline std::vector<GpuIndexBitsManyConfig> waysOf(
        GpuIndexBitsManyConfig config = smallConfig()) {
    std::vector<GpuIndexBitsManyConfig> ways(3, config);
    ways[1].joinSameDevice = false;
    ways[2].joinSameDevice = false;
    ways[2].usePeerAccess = false;
    return ways;
}

inline const char* nameOfWay(const GpuIndexBitsManyConfig& config) {
    return config.joinSameDevice   ? "together"
            : config.usePeerAccess ? "apart"
                                   : "apart through the host";
}

/// Devices, and how copies go from one to another.
struct WayOver {
    int devices;
    GpuIndexBitsManyConfig config;
};

inline std::ostream& operator<<(std::ostream& out, const WayOver& way) {
    return out << way.devices << " devices, "
               << (way.config.usePeerAccess ? "straight" : "through the host");
}

inline std::vector<WayOver> waysOver() {
    std::vector<WayOver> ways;
    for (int devices : severalDevices()) {
        for (bool peers : {true, false}) {
            ways.push_back({devices, smallConfig()});
            ways.back().config.usePeerAccess = peers;
        }
    }
    return ways;
}

/// Shards (or replicas) and one index of the same vectors.
template <class Many>
struct ManyCase {
    ManyCase(
            const DeviceList& places,
            int d,
            faiss::MetricType metric,
            const std::vector<float>& vectors,
            const GpuIndexBitsManyConfig& config = smallConfig(),
            float metricArg = 0)
            : many(places, d, metric, config),
              one(sharedResources(), d, metric, flatConfigOf(config)) {
        many.metric_arg = metricArg;
        one.metric_arg = metricArg;
        add(vectors);
    }

    static GpuIndexBitsFlatConfig flatConfigOf(
            const GpuIndexBitsManyConfig& config) {
        GpuIndexBitsFlatConfig flat;
        flat.useFloat16 = config.useFloat16;
        flat.useBFloat16 = config.useBFloat16;
        return flat;
    }

    void add(const std::vector<float>& vectors) {
        const idx_t n = idx_t(vectors.size()) / one.d;
        many.add(n, vectors.data());
        one.add(n, vectors.data());
        ASSERT_EQ(many.ntotal, one.ntotal);
    }

    void expectSame(
            const std::vector<float>& queries,
            int64_t k,
            const faiss::SearchParameters* params = nullptr) const {
        const auto want = searchOnHost(one, queries, k, params);
        EXPECT_TRUE(sameOutput(searchOnHost(many, queries, k, params), want))
                << "on the host, k = " << k;
        if (!params) {
            EXPECT_TRUE(sameOutput(searchOnDevice(many, queries, k), want))
                    << "on the device, k = " << k;
        }
    }

    Many many;
    GpuIndexBitsFlat one;
};

using ShardsCase = ManyCase<GpuIndexBitsShards>;
using ReplicasCase = ManyCase<GpuIndexBitsReplicas>;

struct ManyMetric {
    faiss::MetricType type;
    Metric ours;
    float arg = 0;
};

template <class Type>
std::vector<ManyMetric> manyMetrics() {
    std::vector<ManyMetric> list = {
            {faiss::METRIC_L2, Metric::L2},
            {faiss::METRIC_INNER_PRODUCT, Metric::InnerProduct},
            {faiss::METRIC_L1, Metric::L1},
            {faiss::METRIC_Linf, Metric::Linf},
            {faiss::METRIC_Lp, Metric::Lp, 3.f},
            {faiss::METRIC_Lp, Metric::Lp, 2.7f},
            {faiss::METRIC_Canberra, Metric::Canberra},
            {faiss::METRIC_BrayCurtis, Metric::BrayCurtis},
            {faiss::METRIC_JensenShannon, Metric::JensenShannon}};
    if constexpr (requires { Type::METRIC_Jaccard; }) {
        list.push_back({Type::METRIC_Jaccard, Metric::Jaccard});
    }
    return list;
}

/// Components in [0, 1), one in four 0: every metric takes them.
inline std::vector<float> positiveVectors(int64_t n, int d, uint32_t seed) {
    auto values = makeVectors(n, d, seed);
    for (float& value : values) {
        value = value < -0.5f ? 0 : std::abs(value);
    }
    return values;
}

/// Both kinds of index in a test of each.
template <class Many>
class ManyTest : public GpuTest {};

using ManyKinds = ::testing::Types<GpuIndexBitsShards, GpuIndexBitsReplicas>;

} // namespace faiss_bits::test
