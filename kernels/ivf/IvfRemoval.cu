#include "kernels/ivf/IvfRemoval.h"

#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfFilterBits.h"
#include "kernels/ivf/ListWords.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

struct RemovalParams {
    IvfLists lists;
    const uint32_t* beforeWords = nullptr;
    const uint32_t* beforeLists = nullptr;
    uint32_t* movers = nullptr; // [removed]: by list, what fills its places
};

/// A vector of a list that loses some.
struct Leaving {
    bool isRemoved;
    uint32_t firstOfList; // in movers
    uint32_t before;      // removed before the vector
    uint32_t removed;     // of the list
    uint32_t length;

    __device__ Leaving(
            const RemovalParams& params,
            uint64_t word,
            uint32_t list,
            uint32_t vector) {
        const uint32_t bits = params.lists.selectedBits[word];
        const uint32_t bit = vector % kListGroup;
        isRemoved = bits >> bit & 1;
        firstOfList = params.beforeLists[list];
        before = params.beforeWords[word] - firstOfList +
                __popc(bits & ((1u << bit) - 1));
        removed = params.beforeLists[list + 1] - firstOfList;
        length = listLength(params.lists, list);
    }

    __device__ bool isBehind(uint32_t vector) const {
        return vector >= length - removed;
    }
};

/// Which vectors move: those that stay, but lie behind what will be left.
__global__ __launch_bounds__(kThreads) void findMoversKernel(
        const __grid_constant__ RemovalParams params,
        uint64_t words) {
    forWords(
            params.lists,
            0,
            words,
            [&](uint64_t word, uint32_t list, uint32_t vector, bool isThere) {
                if (!isThere) {
                    return;
                }
                const Leaving one(params, word, list, vector);
                if (one.removed > 0 && !one.isRemoved && one.isBehind(vector)) {
                    const uint32_t stayBehindIt = one.length - 1 - vector -
                            (one.removed - one.before);
                    params.movers[one.firstOfList + stayBehindIt] = vector;
                }
            });
}

/// A warp moves the vectors of a word one after another. What moves lies behind
/// all that is filled, so nothing is written that is still read.
template <ListLayout kLayout>
__global__ __launch_bounds__(kThreads) void moveKernel(
        const __grid_constant__ RemovalParams params,
        uint64_t words) {
    const IvfLists& lists = params.lists;
    const int lane = threadIdx.x % kWarpSize;
    forWords(
            lists,
            0,
            words,
            [&](uint64_t word, uint32_t list, uint32_t vector, bool isThere) {
                bool isFilled = false;
                uint32_t mover = 0;
                if (isThere) {
                    const Leaving one(params, word, list, vector);
                    isFilled = one.isRemoved && !one.isBehind(vector);
                    if (isFilled) {
                        mover = params.movers[one.firstOfList + one.before];
                    }
                }
                auto* ofList = static_cast<float*>(
                        const_cast<void*>(lists.vectors[list]));
                uint32_t left = __ballot_sync(kFullWarp, isFilled);
                for (; left != 0; left &= left - 1) {
                    const int from = __ffs(left) - 1;
                    const uint32_t source = __shfl_sync(kFullWarp, mover, from);
                    const uint32_t to = vector - lane + from;
                    for (int c = lane; c < lists.d; c += kWarpSize) {
                        ofList[listPlace<kLayout>(to, c, lists.d)] =
                                ofList[listPlace<kLayout>(source, c, lists.d)];
                    }
                }
                if (isFilled && lists.idKind != ListIds::Places) {
                    void* ids = const_cast<void*>(lists.ids[list]);
                    if (lists.idKind == ListIds::Given64) {
                        static_cast<int64_t*>(ids)[vector] =
                                static_cast<int64_t*>(ids)[mover];
                    } else {
                        static_cast<int32_t*>(ids)[vector] =
                                static_cast<int32_t*>(ids)[mover];
                    }
                }
            });
}

} // namespace

size_t ivfRemovalWorkspaceBytes(idx_t numRemoved) {
    WorkspaceSlices slices;
    slices.take<uint32_t>(size_t(numRemoved));
    return slices.used();
}

void runIvfRemoval(
        const IvfLists& lists,
        const IvfSelectedCount& count,
        Workspace workspace,
        cudaStream_t stream) {
    const idx_t words = ivfFilterWords(lists);
    RemovalParams params;
    params.lists = lists;
    params.beforeWords = count.beforeWords;
    params.beforeLists = count.beforeLists;
    params.movers = static_cast<uint32_t*>(workspace.data);
    const unsigned blocks = blocksForWords(words, kThreads);
    findMoversKernel<<<blocks, kThreads, 0, stream>>>(params, words);
    BITS_CUDA_CHECK(cudaGetLastError());
    const auto kernel = lists.layout == ListLayout::Rows
            ? moveKernel<ListLayout::Rows>
            : moveKernel<ListLayout::Interleaved>;
    kernel<<<blocks, kThreads, 0, stream>>>(params, words);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
