#include "benchs/many/ManyPlaces.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/many/GpuIndexBitsReplicas.h"
#include "faiss_bits/many/GpuIndexBitsShards.h"

namespace faiss_bits::bench {

namespace {

constexpr size_t kTempMemory = size_t(1) << 30; // of each part

[[noreturn]] void refuse(const char* option, const std::string& value) {
    std::fprintf(stderr, "%s: '%s' is none\n", option, value.c_str());
    std::exit(2);
}

} // namespace

ExtraOption numberOption(const char* name, const char* help, int64_t& value) {
    return {name, help, [&value](const std::string& v) {
                value = parseNumbers(v).front();
            }};
}

ExtraOption numbersOption(
        const char* name,
        const char* help,
        std::vector<int64_t>& values) {
    return {name, help, [&values](const std::string& v) {
                values = parseNumbers(v);
            }};
}

std::vector<ExtraOption> ManySettings::options() {
    return {numbersOption("--parts", "shards or replicas; 1: one index", parts),
            numberOption("--devices", "parts lie on them in turn", devices),
            {"--kinds",
             "of shards,replicas",
             [this](const std::string& v) { kinds = splitList(v); }},
            {"--peers",
             "yes, or no: copies through the host",
             [this](const std::string& v) { peers = v != "no"; }}};
}

void ManySettings::require() const {
    for (const int64_t count : parts) {
        if (count < 1) {
            refuse("--parts", std::to_string(count));
        }
    }
    if (devices < 1) {
        refuse("--devices", std::to_string(devices));
    }
    if (kinds.empty()) {
        refuse("--kinds", "");
    }
    for (const std::string& kind : kinds) {
        if (kind != "shards" && kind != "replicas") {
            refuse("--kinds", kind);
        }
    }
}

ManyPlaces::ManyPlaces(const ManySettings& settings) : settings_(settings) {
    const int64_t most =
            *std::max_element(settings.parts.begin(), settings.parts.end());
    for (int64_t i = 0; i < most; ++i) {
        resources_.push_back(
                std::make_unique<faiss::gpu::StandardGpuResources>());
        resources_.back()->setTempMemory(kTempMemory);
    }
}

gpu::DeviceList ManyPlaces::list(int parts) const {
    gpu::DeviceList list;
    for (int part = 0; part < parts; ++part) {
        list.add(resources_[part].get(), part % devicesOf(parts));
    }
    return list;
}

int ManyPlaces::devicesOf(int parts) const {
    return int(std::min<int64_t>(parts, settings_.devices));
}

gpu::GpuIndexBitsManyConfig ManyPlaces::config() const {
    gpu::GpuIndexBitsManyConfig config;
    config.usePeerAccess = settings_.peers;
    return config;
}

std::unique_ptr<faiss::Index> ManyPlaces::ours(
        const std::string& kind,
        int parts,
        int64_t d) const {
    constexpr auto metric = faiss::METRIC_L2;
    if (parts == 1) {
        return std::make_unique<gpu::GpuIndexBitsFlat>(first(), int(d), metric);
    }
    if (kind == "shards") {
        return std::make_unique<gpu::GpuIndexBitsShards>(
                list(parts), int(d), metric, config());
    }
    return std::make_unique<gpu::GpuIndexBitsReplicas>(
            list(parts), int(d), metric, config());
}

Row ManyPlaces::row(
        const char* bench,
        const std::string& method,
        const char* index,
        const std::string& kind,
        int parts,
        const char* arrays) const {
    Row row;
    row.text("bench", bench)
            .text("method", method)
            .text("index", index)
            .text("kind", kind)
            .integer("shards", parts)
            .integer("devices", devicesOf(parts))
            .integer("peers", devicesOf(parts) > 1 && settings_.peers)
            .text("arrays", arrays);
    return row;
}

int finishBench(const Report& report, const Budget& budget, int wrong) {
    std::printf(
            "%zu rows, %.0f s, %d wrong\n",
            report.size(),
            budget.seconds(),
            wrong);
    return wrong == 0 ? 0 : 1;
}

DeviceArray<float> randomVectors(int64_t rows, int64_t d, int seed) {
    DeviceArray<float> data(rows * d);
    fillKeys(data.data(), DataType::Float32, rows, d, Order::Random, seed);
    return data;
}

std::vector<float> download(const DeviceArray<float>& array) {
    std::vector<float> host(array.size());
    BITS_CUDA_CHECK(cudaMemcpy(
            host.data(),
            array.data(),
            host.size() * sizeof(float),
            cudaMemcpyDeviceToHost));
    return host;
}

} // namespace faiss_bits::bench
