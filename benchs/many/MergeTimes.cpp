#include "benchs/many/MergeTimes.h"

#include <algorithm>
#include <vector>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Timing.h"
#include "kernels/many/MergeLists.h"

namespace faiss_bits::bench {

namespace {

/// Results of one shard.
struct Found {
    Found(int64_t q, int64_t width) : distances(q * width), labels(q * width) {}

    DeviceArray<float> distances;
    DeviceArray<idx_t> labels;
};

} // namespace

double timeMerge(
        const gpu::GpuIndexBitsShards& shards,
        const float* queries,
        int64_t q,
        int64_t k,
        float* distances,
        idx_t* labels,
        const std::function<void()>& before) {
    std::vector<Found> found;
    MergeProblem merge;
    merge.rows = q;
    merge.k = k;
    merge.idsAscend = true;
    idx_t first = 0;
    for (int i = 0; i < shards.count(); ++i) {
        const idx_t width = shards.shardK(i, q, k);
        found.emplace_back(q, width);
        float* const d = found.back().distances.data();
        idx_t* const ids = found.back().labels.data();
        shards.at(i)->search(q, queries, width, d, ids);
        merge.lists.push_back({d, ids, width, first, false});
        first += shards.shardSize(i);
    }
    merge.outDistances = distances;
    merge.outIds = labels;
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
    TimingMode mode;
    mode.before = before;
    return timeCall([&](int) { runMergeLists(merge, nullptr); }, mode).ms;
}

double timeLongestSearch(
        const gpu::GpuIndexBitsShards& shards,
        const float* queries,
        int64_t q,
        int64_t k,
        int devices) {
    double longest = 0;
    for (int device = 0; device < devices; ++device) {
        BITS_CUDA_CHECK(cudaSetDevice(device));
        DeviceArray<float> here(q * shards.d);
        BITS_CUDA_CHECK(cudaMemcpy(
                here.data(),
                queries,
                here.size() * sizeof(float),
                cudaMemcpyDefault));
        std::vector<int> parts;
        std::vector<Found> found;
        for (int i = 0; i < shards.count(); ++i) {
            if (shards.shardDevice(i) == device) {
                parts.push_back(i);
                found.emplace_back(q, shards.shardK(i, q, k));
            }
        }
        TimingMode mode;
        mode.wallClock = true;
        const auto search = [&](int) {
            for (size_t i = 0; i < parts.size(); ++i) {
                shards.at(parts[i])->search(
                        q,
                        here.data(),
                        shards.shardK(parts[i], q, k),
                        found[i].distances.data(),
                        found[i].labels.data());
            }
        };
        longest = std::max(longest, timeCall(search, mode).ms);
    }
    BITS_CUDA_CHECK(cudaSetDevice(0));
    return longest;
}

} // namespace faiss_bits::bench
