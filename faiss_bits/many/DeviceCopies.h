#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "faiss_bits/common/Waiting.h"
#include "faiss_bits/many/ManyDevices.h"
#include "faiss_bits/many/ManyMemory.h"

namespace faiss_bits::gpu::detail {

/// Copies between the groups of an index, enqueued in the order of streams on
/// both sides. Straight from device to device where these can (peer access is
/// switched on, and stays on), else in pieces through pinned memory of the
/// host.
///
/// Threads  copies from one group to another come from one thread at a time
/// Memory   8 MiB of pinned memory for a pair of groups, from its first copy
///          through the host on
class DeviceCopies {
   public:
    DeviceCopies(
            const ManyDevices& devices,
            const GpuIndexBitsManyConfig& config);
    ~DeviceCopies();

    /// Copies bytes from `source` on the device of group `from` to `target` on
    /// that of group `to`. It begins when what is on sourceStream now is done;
    /// what comes onto either stream later comes after it.
    void copy(
            int to,
            void* target,
            cudaStream_t targetStream,
            int from,
            const void* source,
            cudaStream_t sourceStream,
            size_t bytes);

    /// The same of what is there from `ready` on, and stays as it is until
    /// targetStream has come past the copy: it begins then, whatever is on the
    /// stream of `ready` by now.
    ///
    /// helper  a stream of the source's device, for copies through the host
    /// canUseSource  what canUse(source) says on the target's device, where that
    ///         is known
    void fetch(
            int to,
            void* target,
            cudaStream_t targetStream,
            int from,
            const void* source,
            const StreamMark& ready,
            cudaStream_t helper,
            size_t bytes,
            std::optional<bool> canUseSource = std::nullopt);

    /// Copies as soon as sourceStream comes to it, whatever is on the target's
    /// own stream: nobody uses `target` before `done`, which becomes the end of
    /// the copy. Straight on sourceStream, or through the host with `helper`, a
    /// stream of the target's device.
    void send(
            int to,
            void* target,
            cudaStream_t helper,
            int from,
            const void* source,
            cudaStream_t sourceStream,
            size_t bytes,
            StreamMark& done);

    /// Calls add(first, rows, copy) for some of n vectors x [n, d] of group 0's
    /// device, which are there, after the other, with their copy on the device
    /// of group `to`: no second copy of all is made. Waits.
    void addSome(
            int to,
            const GpuContext& context,
            const GpuContext& home,
            const float* x,
            idx_t n,
            int d,
            const std::function<
                    void(idx_t first, idx_t rows, const float* copy)>& add);

    /// True if copies from one group to another go straight.
    bool isDirect(int to, int from) const;

   private:
    struct Path;

    Path& path_(int to, int from) const {
        return *paths_[size_t(to) * numGroups_ + from];
    }
    void copyStraight_(
            const Path& path,
            void* target,
            cudaStream_t targetStream,
            const void* source,
            size_t bytes);
    void copyThroughHost_(
            Path& path,
            void* target,
            cudaStream_t targetStream,
            const void* source,
            cudaStream_t sourceStream,
            size_t bytes);

    int numGroups_;
    std::vector<std::unique_ptr<Path>> paths_; // [to, from]
};

} // namespace faiss_bits::gpu::detail
