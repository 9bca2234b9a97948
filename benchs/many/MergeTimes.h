#pragma once

#include <functional>

#include "faiss_bits/many/GpuIndexBitsShards.h"

namespace faiss_bits::bench {

/// Ms of the merge of what the shards are asked for, all on one device, alone.
/// Also leaves its results [q, k].
///
/// queries  [q, d] on the device
/// before   before each timing, on the default stream
double timeMerge(
        const gpu::GpuIndexBitsShards& shards,
        const float* queries,
        int64_t q,
        int64_t k,
        float* distances,
        idx_t* labels,
        const std::function<void()>& before);

/// Ms of the device that takes longest to search its shards for what they are
/// asked for, one shard after the other, the queries being there.
///
/// queries  [q, d] on device 0
double timeLongestSearch(
        const gpu::GpuIndexBitsShards& shards,
        const float* queries,
        int64_t q,
        int64_t k,
        int devices);

} // namespace faiss_bits::bench
