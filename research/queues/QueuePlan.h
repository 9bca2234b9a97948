#pragma once

#include <vector>

#include "research/queues/QueueParams.h"
#include "research/queues/QueueSelect.h"
#include "research/queues/SortPasses.h"

namespace faiss_bits {

/// How a problem is spread over threads and launches.
struct QueuePlan {
    int queueSize = 0;
    int lanesLog = 0;                 // threads of a row: 1 << lanesLog
    idx_t segment = 0;                // as in QueueParams
    idx_t rowsAtOnce = 0;             // rows of one round of launches
    int groupLog = 0;                 // of the partition; 0: none
    std::vector<uint32_t> levelSizes; // of the partition, level 1 first
    std::vector<SortPass> sortPasses; // of what the queues leave

    /// One block each, for that many rows.
    idx_t warps(idx_t rows) const {
        const idx_t lanes = rows << lanesLog;
        return (lanes + kQueueLanes - 1) / kQueueLanes;
    }
};

/// Checks shape and options, and plans.
QueuePlan planQueueSelect(
        const SelectProblem& problem,
        const QueueSelectOptions& options);

} // namespace faiss_bits
