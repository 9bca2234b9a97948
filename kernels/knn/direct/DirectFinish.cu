#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/knn/direct/DirectFinish.cuh"
#include "kernels/knn/direct/DirectLaunch.h"

namespace faiss_bits {

namespace {

/// Groups whose least shared memory has room for, as they are asked for three
/// times.
constexpr uint32_t kMostStagedGroups = 16384;

template <int kThreads, int kRoom>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads)
        directFinishKernel(const __grid_constant__ DirectFinishParams params) {
    extern __shared__ uint64_t memory[];
    allowNext();
    waitForPrevious();
    DirectFinish<kThreads, kRoom>::run(params, blockIdx.x, memory);
}

template <int kThreads, int kRoom>
void launchFinish(
        const DirectFinishParams& params,
        unsigned rows,
        cudaStream_t stream) {
    const auto kernel = directFinishKernel<kThreads, kRoom>;
    constexpr size_t kBytes = DirectFinish<kThreads, kRoom>::kBytes;
    DirectFinishParams p = params;
    size_t bytes = 0;
    // More than one for each thread.
    if (p.direct.groups > kThreads && p.direct.groups <= kMostStagedGroups) {
        const size_t wanted = kBytes + sizeof(uint64_t) * p.direct.groups;
        bytes = allowSharedBytes(kernel, wanted);
        p.stagesLeast = bytes == wanted;
    }
    launchAfterPrevious(
            kernel,
            rows,
            kThreads,
            p.stagesLeast ? bytes : allowSharedBytes(kernel, kBytes),
            stream,
            p);
}

} // namespace

void launchDirectFinish(
        const DirectFinishParams& params,
        unsigned rows,
        cudaStream_t stream) {
    DirectFinishParams p = params;
    p.mostNear = mostNearGroups(uint32_t(p.k));
    const auto launch = p.k <= 32 ? launchFinish<512, 64>
            : p.k <= 512          ? launchFinish<512, 512>
            : p.k <= 1024         ? launchFinish<1024, 1024>
                                  : launchFinish<1024, 2048>;
    launch(p, rows, stream);
}

} // namespace faiss_bits
