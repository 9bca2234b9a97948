#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "research/queues/PartialBitonicSelect.h"
#include "research/queues/QueueSelect.h"

namespace faiss_bits::bench {

/// A selection under the name that the figures have for it.
struct PaperMethod {
    std::string name;
    /// Further fields of its rows.
    std::vector<std::pair<std::string, int64_t>> fields;
    std::function<size_t(const SelectProblem&)> workspaceBytes;
    std::function<void(const SelectProblem&, Workspace)> run;
};

/// "insertion", "heap", "merge" or "merge_aligned", then "+buf" (Buffered
/// Search), "+full" (buffers are emptied together), "+sort", "+hp4" (partition
/// with G = 4). Field threads_per_row; 0: as many as fill the device.
PaperMethod queueMethod(QueueSelectOptions options);

/// "bitonic_shared", "bitonic_shuffles", "bitonic_registers", or
/// "bitonic_buffered" with the fields reads and prefetch. One block a row.
PaperMethod bitonicMethod(PartialBitonicOptions options);

/// An algorithm of runSelect by its name.
PaperMethod selectMethod(const std::string& algorithm);

/// "faiss_warp" or "faiss_block".
PaperMethod faissMethod(const std::string& name);

/// "faiss_warp" with the field thread_queue: a size that faissThreadQueues has.
PaperMethod faissWarpMethod(int threadQueue);

/// Bits on a row that is cut into `partitions` parts, then Bits on their
/// results (the thesis's 5.4.2). `ids` is [cols], 0 and up, on the device; it
/// gives the parts the ids of the whole row.
PaperMethod partitionedBits(int partitions, const int32_t* ids);

} // namespace faiss_bits::bench
