#pragma once

#include "kernels/select/SelectParams.h"

namespace faiss_bits {

/// Threads of a warp; a queue's slots are this far apart, so that a warp that
/// reads the same slot of its 32 queues reads one line.
constexpr int kQueueLanes = 32;
/// Candidates that a thread holds back (Buffered Search).
constexpr int kQueueBuffer = 16;
/// Levels of a Hierarchical Partition above the keys, at most: G = 2, 2^32
/// columns.
constexpr int kMaxQueueLevels = 32;

/// What the queue kernels get by value.
struct QueueParams {
    SelectParams select; // firstRow: of this launch
    DataType keyType = DataType::Float32;
    uint32_t rows = 0; // of this launch

    int queueSize = 0; // slots of a queue: k, or the next Merge Queue size
    int firstLevel = 0;
    bool buffered = false;
    bool flushTogether = false;
    bool localSort = false;
    bool sharedQueues = false;

    int lanesLog = 0;  // threads of a row: 1 << lanesLog
    idx_t segment = 0; // columns of a warp (no partition) or of a thread

    // [warps, queueSize, kQueueLanes]: what the queues hold in the end.
    uint64_t* outQueues = nullptr;
    // With partition: the same size again, the queues while they work.
    uint64_t* workQueues = nullptr;

    // The partition. Level l + 1 has the least key of every group of level l
    // (level 0: the keys), [rows << lanesLog, levelSizes[l]] from level 1 on.
    int groupLog = 0; // G = 1 << groupLog
    int numLevels = 0;
    uint32_t* levels[kMaxQueueLevels] = {};    // [0] is level 1
    uint32_t levelSizes[kMaxQueueLevels] = {}; // of a whole segment
};

} // namespace faiss_bits
