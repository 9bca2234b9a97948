/// The kernel of PassAtOnce.h: tiles of 64 queries, of which two warpgroups
/// have half of the vectors each, and a third makes the images of the next
/// tile; one of its threads copies vectors.
///
/// Most of the vectors stay in shared memory for all tiles of a block; the
/// others come from L2 for each tile.
///
/// Keys are D s, D = |q|^2 + |x|^2 - 2 <x', q'> and s a power of two that
/// brings |q|^2 + |x|^2 of the longest vector to 2^12: then no finite key is
/// beyond float16, and those of vectors whose squared norm is 2^-26 of it still
/// have 11 bits. None is below 0, so they are ordered as integers.
///
/// What must pass does. The error of the key is what TensorScanBound.h has for
/// wgmma, without a: fl(fl(n_q + n_x) - F <x', q'>), all times s, has
/// u (n_q + n_x) of the sum in place of what n_q - limit takes there. It passes
/// where, rounded to float16, it is not above limit s + 2^-24 rounded up to
/// float16, and roundings are monotone; 2^-24 is far more than what products
/// below 2^-126 lose.
///
/// Bound by: the latencies of few warps. docs/design/flat_few_vectors.md
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/fused/tensor/PassAtOnceKeys.cuh"
#include "kernels/knn/fused/tensor/PassAtOnceQueries.cuh"

namespace faiss_bits::at_once {

template <int kPerGroup, int kSlabs, int kOwnStrips>
struct Body {
    using S = Shape<kPerGroup, kSlabs, kOwnStrips>;

    const Params& params;
    Shared<kPerGroup, kSlabs, kOwnStrips>& shared;

    __device__ void run() {
        if (threadIdx.x == 0) {
            initBarrier(&shared.residentFull, 1);
            for (int i = 0; i < 3; ++i) {
                for (int g = 0; g < kConsumerGroups; ++g) {
                    initBarrier(&shared.slotFull[g][i], 1);
                }
            }
            for (int i = 0; i < kStreamSlots; ++i) {
                initBarrier(&shared.slotEmpty[i], 4);
            }
            for (int i = 0; i < 2; ++i) {
                // All lanes arrive: each speaks for what it wrote or read, as
                // racecheck wants it.
                initBarrier(&shared.imageFull[i], S::kImageWarps * kWarpSize);
                initBarrier(
                        &shared.imageEmpty[i], 4 * kConsumerGroups * kWarpSize);
            }
            fenceBarrierInit();
        }
        __syncthreads();
        allowNext();
        waitForPrevious();
        if (threadIdx.x < 128) {
            wgmma::lowerRegisters<S::kImageRegisters>();
            const int warp =
                    __shfl_sync(kFullWarp, int(threadIdx.x) / kWarpSize, 0);
            Producers<kPerGroup, kSlabs, kOwnStrips>{params, shared}.run(warp);
        } else {
            wgmma::raiseRegisters<S::kKeyRegisters>();
            Consumers<kPerGroup, kSlabs, kOwnStrips>{params, shared}.run();
        }
    }
};

template <int kPerGroup, int kSlabs, int kOwnStrips>
__global__ void __launch_bounds__(kThreads, 1)
        passAtOnceKernel(const __grid_constant__ Params params) {
    extern __shared__ __align__(1024) uint8_t memory[];
    using Memory = Shared<kPerGroup, kSlabs, kOwnStrips>;
    Body<kPerGroup, kSlabs, kOwnStrips> body{
            params, *reinterpret_cast<Memory*>(memory)};
    body.run();
}

} // namespace faiss_bits::at_once
