#pragma once

#include <memory>
#include <vector>

#include "faiss_bits/common/Waiting.h"
#include "faiss_bits/many/ManyDevices.h"

namespace faiss_bits::gpu::detail {

/// Copies between the groups of an index, enqueued in the order of streams on
/// both sides. Straight from device to device where these can (peer access is
/// switched on, and stays on), else in pieces through pinned memory of the
/// host.
///
/// Threads  copies to one group come from one thread at a time
/// Memory   8 MiB of pinned memory for a pair of groups without peer access,
///          from its first copy on
class DeviceCopies {
   public:
    DeviceCopies(
            const ManyDevices& devices,
            const GpuIndexBitsManyConfig& config);
    ~DeviceCopies();

    /// Copies bytes from `source` on the device of group `from` to `target` on
    /// that of group `to`. It begins when what is on sourceStream now is done,
    /// and what comes onto targetStream later comes after it. keepsSource: what
    /// comes onto sourceStream later may come before it.
    void copy(
            int to,
            void* target,
            cudaStream_t targetStream,
            int from,
            const void* source,
            cudaStream_t sourceStream,
            size_t bytes,
            bool keepsSource = false);

    /// True if copies from one group to another go straight.
    bool isDirect(int to, int from) const;

   private:
    struct Path;

    Path& path_(int to, int from) const {
        return *paths_[size_t(to) * numGroups_ + from];
    }
    void copyThroughHost_(
            Path& path,
            char* target,
            cudaStream_t targetStream,
            const char* source,
            cudaStream_t sourceStream,
            size_t bytes);

    int numGroups_;
    std::vector<std::unique_ptr<Path>> paths_; // [to, from]
};

} // namespace faiss_bits::gpu::detail
