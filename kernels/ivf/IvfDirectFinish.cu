// A block a row finishes it.

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/LaunchesTogether.h"
#include "kernels/ivf/IvfDirectFinish.cuh"

namespace faiss_bits {

namespace {

/// A block a row.
template <int kThreads, int kRoom>
__global__ __launch_bounds__(kThreads) void directFinishKernel(
        const __grid_constant__ IvfDirectParams params) {
    using Finish = DirectFinish<kThreads, kRoom>;
    extern __shared__ __align__(16) uint8_t memory[];
    allowNext();
    waitForPrevious();
    Finish{*reinterpret_cast<typename Finish::SharedStorage*>(memory),
           params,
           blockIdx.x}
            .run();
}

} // namespace

void launchIvfDirectFinish(const IvfDirectParams& params, cudaStream_t stream) {
    constexpr int kThreads = 512;
    constexpr int kRoom = 4 * kMostFinishedK;
    const auto kernel = directFinishKernel<kThreads, kRoom>;
    launchTogether(
            kernel,
            dim3(params.search.rows),
            kThreads,
            sizeof(DirectFinish<kThreads, kRoom>::SharedStorage),
            stream,
            params);
}

} // namespace faiss_bits
