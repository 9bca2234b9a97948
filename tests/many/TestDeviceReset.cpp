/// What a process keeps for later calls (events, pinned words, who may use
/// whose memory) is no obstacle after a program has reset its devices. Resets
/// those of the process: this is the program's only test.

#include <memory>

#include "tests/many/ManyIvfHarness.h"

namespace faiss_bits::test {
namespace {

class DeviceReset : public GpuTest {};

/// Answers of shards, replicas and one index on new resources. So many queries
/// of lists wait for a word of their device.
std::vector<SearchOutput> answersOf(
        const faiss::IndexIVFFlat& lists,
        int devices) {
    constexpr int64_t kQueries = 5000;
    const auto queries = makeVectors(kQueries, int(lists.d), 2);
    std::vector<std::unique_ptr<faiss::gpu::StandardGpuResources>> resources;
    DeviceList places;
    for (int device = 0; device < devices; ++device) {
        resources.push_back(
                std::make_unique<faiss::gpu::StandardGpuResources>());
        resources.back()->setTempMemory(size_t(64) << 20);
        places.add(resources.back().get(), device);
    }
    std::vector<SearchOutput> all;
    const std::unique_ptr<faiss::Index> one(
            gpu::index_cpu_to_gpu(resources[0].get(), 0, &lists));
    all.push_back(searchOnDevice(*one, queries, 10));
    for (const bool isSharded : {true, false}) {
        GpuMultipleClonerOptions options;
        options.shard = isSharded;
        const std::unique_ptr<faiss::Index> many(
                gpu::index_cpu_to_gpu_multiple(places, &lists, &options));
        all.push_back(searchOnDevice(*many, queries, 10));
    }
    return all;
}

TEST_F(DeviceReset, SearchesGoOnWithNewIndexes) {
    const int d = 16;
    const auto vectors = makeVectors(20000, d, 1);
    faiss::IndexFlat quantizer(d);
    quantizer.add(64, vectors.data());
    faiss::IndexIVFFlat lists(&quantizer, d, 64);
    lists.is_trained = true;
    lists.nprobe = 16;
    lists.add(20000, vectors.data());
    const int devices = std::min(numDevices(), 4);

    const auto want = answersOf(lists, devices);
    for (int run = 0; run < 2; ++run) {
        for (int device = 0; device < numDevices(); ++device) {
            ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
            ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
        }
        ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
        const auto got = answersOf(lists, devices);
        for (size_t i = 0; i < want.size(); ++i) {
            EXPECT_TRUE(sameOutput(got[i], want[i])) << "index " << i;
            EXPECT_TRUE(sameOutput(got[i], want[0])) << "index " << i;
        }
    }
}

} // namespace
} // namespace faiss_bits::test
