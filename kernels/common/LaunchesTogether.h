#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstring>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"

/// Some kernels that the device gets as one. A launch takes the host 3 to 4 us,
/// so that kernels which take less wait for it one after another; a graph of
/// them takes 2, and under 1 more for each kernel whose arguments are not those
/// of the call before.
namespace faiss_bits {

/// A launch as launchAfterPrevious() makes it.
struct LaunchOfKernel {
    static constexpr size_t kMostParamBytes = 1024;

    const void* kernel = nullptr;
    dim3 blocks;
    unsigned threads = 0;
    size_t sharedBytes = 0;
    size_t paramBytes = 0;
    alignas(16) std::array<std::byte, kMostParamBytes> params;

    bool operator==(const LaunchOfKernel& other) const;
};

/// While there is one, launchTogether() of this thread adds to it in place of
/// launching, if it is of this stream; nothing else may be enqueued between.
/// What was not enqueued is forgotten, as after an exception.
///
/// Threads  one; of several threads on a stream their own calls come together
class LaunchesTogether {
   public:
    explicit LaunchesTogether(cudaStream_t stream);
    ~LaunchesTogether();
    LaunchesTogether(const LaunchesTogether&) = delete;
    LaunchesTogether& operator=(const LaunchesTogether&) = delete;

    /// This thread's, or nullptr.
    static LaunchesTogether* ofThread();

    /// As a graph, if the stream is not captured, is one of the first 16 on its
    /// device that ask for it, and CUDA makes one; else one after another.
    /// Returns whether it was a graph. Throws Error if there are not kCount of
    /// them.
    bool enqueue();

    /// The place of one more.
    LaunchOfKernel& add();

    static constexpr int kCount = 3;

   private:
    cudaStream_t stream_;
    int count_ = 0;
    std::array<LaunchOfKernel, kCount>& launches_; // of the thread
};

/// launchAfterPrevious(), or a part of this thread's LaunchesTogether. The
/// kernel's limit of dynamic shared memory is raised to sharedBytes, which a
/// graph that has launched the same before need not ask for again.
template <class Params>
void launchTogether(
        void (*kernel)(Params),
        dim3 blocks,
        unsigned threads,
        size_t sharedBytes,
        cudaStream_t stream,
        const Params& params) {
    static_assert(
            sizeof(Params) <= LaunchOfKernel::kMostParamBytes &&
            alignof(Params) <= 16);
    LaunchesTogether* const all = LaunchesTogether::ofThread();
    if (!all) {
        launchAfterPrevious(
                kernel,
                blocks,
                threads,
                allowSharedBytes(kernel, sharedBytes),
                stream,
                params);
        return;
    }
    LaunchOfKernel& launch = all->add();
    launch.kernel = reinterpret_cast<const void*>(kernel);
    launch.blocks = blocks;
    launch.threads = threads;
    launch.sharedBytes = sharedBytes;
    launch.paramBytes = sizeof(Params);
    std::memcpy(launch.params.data(), &params, sizeof(Params));
}

} // namespace faiss_bits
