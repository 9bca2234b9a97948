/// Bottom-up construction of the Hierarchical Partition (Tang 2015, Algorithm
/// 4). The paper gives a thread a whole list; here a thread makes one element
/// of the next level, which reads the same and needs no column-major lists.

#include "kernels/common/CudaCheck.h"
#include "research/queues/QueueKeys.cuh"
#include "research/queues/QueueLaunch.h"

namespace faiss_bits {

namespace {

constexpr int kLevelThreads = 256;

template <int Group>
__global__ __launch_bounds__(kLevelThreads) void groupMinimaKernel(
        const __grid_constant__ QueueParams p,
        int level, // that is made; 1 is above the keys
        unsigned blocksPerList) {
    const uint64_t list = blockIdx.x / blocksPerList;
    const uint32_t group =
            blockIdx.x % blocksPerList * kLevelThreads + threadIdx.x;
    const uint32_t room = p.levelSizes[level - 1];
    if (group >= room) {
        return;
    }
    const uint32_t localRow = uint32_t(list >> p.lanesLog);
    const uint64_t place = list & ((uint64_t(1) << p.lanesLog) - 1);
    const idx_t cols = p.select.cols;
    const idx_t first = min(idx_t(place) * p.segment, cols);
    // Items of the level below, of a list that may be shorter than others.
    uint64_t size = min(first + p.segment, cols) - first;
    for (int i = 1; i < level; ++i) {
        size = (size + Group - 1) / Group;
    }
    const uint64_t begin = uint64_t(group) * Group;
    if (begin >= size) {
        return;
    }
    uint32_t least = kNanKey;
    if (level > 1) {
        const uint32_t* keys =
                p.levels[level - 2] + list * p.levelSizes[level - 2] + begin;
#pragma unroll
        for (int i = 0; i < Group; ++i) {
            if (begin + i < size) {
                least = min(least, keys[i]);
            }
        }
    } else {
        const size_t from =
                size_t(p.select.firstRow + localRow) * p.select.rowStride +
                first + begin;
        withKeyType(p.keyType, [&](auto* typed) {
            const auto* keys =
                    static_cast<decltype(typed)>(p.select.keys) + from;
#pragma unroll
            for (int i = 0; i < Group; ++i) {
                if (begin + i < size) {
                    least = min(
                            least,
                            entryKey(keyEntry(keys[i], p.select.signMask, 0)));
                }
            }
        });
    }
    p.levels[level - 1][list * room + group] = least;
}

} // namespace

void buildQueueLevels(const QueueParams& params, cudaStream_t stream) {
    auto* kernel = params.groupLog == 1 ? groupMinimaKernel<2>
            : params.groupLog == 2      ? groupMinimaKernel<4>
            : params.groupLog == 3      ? groupMinimaKernel<8>
                                        : groupMinimaKernel<16>;
    const uint64_t lists = uint64_t(params.rows) << params.lanesLog;
    for (int level = 1; level <= params.numLevels; ++level) {
        const unsigned blocks =
                (params.levelSizes[level - 1] + kLevelThreads - 1) /
                kLevelThreads;
        kernel<<<unsigned(lists * blocks), kLevelThreads, 0, stream>>>(
                params, level, blocks);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
}

} // namespace faiss_bits
