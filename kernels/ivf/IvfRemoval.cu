#include "kernels/ivf/IvfRemoval.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfFilterBits.h"
#include "kernels/ivf/ListMoves.cuh"
#include "kernels/ivf/ListWords.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr idx_t kMaxBlocks = 1 << 16; // the kernels stride over the rest

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
/// all that is filled, so no vector is written that is still read; where
/// vectors share bytes, one that is read keeps its bits.
template <class Move>
__global__ __launch_bounds__(kThreads) void moveKernel(
        const __grid_constant__ RemovalParams params,
        Move move,
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
                uint32_t left = __ballot_sync(kFullWarp, isFilled);
                for (; left != 0; left &= left - 1) {
                    const int from = __ffs(left) - 1;
                    const uint32_t source = __shfl_sync(kFullWarp, mover, from);
                    move(const_cast<void*>(lists.vectors[list]),
                         vector - lane + from,
                         source,
                         lane);
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

template <class Move>
void launchMoves(
        const RemovalParams& params,
        const Move& move,
        idx_t words,
        cudaStream_t stream) {
    moveKernel<<<blocksForWords(words, kThreads), kThreads, 0, stream>>>(
            params, move, words);
    BITS_CUDA_CHECK(cudaGetLastError());
}

/// A warp clears what the last group of a list has behind its last vector.
__global__ __launch_bounds__(kThreads) void clearBehindKernel(
        const __grid_constant__ IvfLists lists,
        int numCodes,
        int bits) {
    const int lane = threadIdx.x % kWarpSize;
    const idx_t warps = idx_t(gridDim.x) * (kThreads / kWarpSize);
    for (idx_t l = idx_t(blockIdx.x) * (kThreads / kWarpSize) +
                 threadIdx.x / kWarpSize;
         l < lists.numLists;
         l += warps) {
        const uint32_t length = listLength(lists, uint32_t(l));
        const int kept = int(length % kListGroup) * bits;
        if (kept == 0) {
            continue; // nothing is behind it in its group
        }
        // A code of 32 vectors takes as many words as it has bits.
        auto* words =
                static_cast<uint32_t*>(const_cast<void*>(lists.vectors[l])) +
                int64_t(length / kListGroup) * numCodes * bits;
        for (int w = lane; w < numCodes * bits; w += kWarpSize) {
            const int left = kept - w % bits * 32;
            if (left < 32) {
                words[w] &= left > 0 ? (1u << left) - 1 : 0;
            }
        }
    }
}

__global__ __launch_bounds__(kThreads) void dropBehindKernel(
        const __grid_constant__ IvfLists lists,
        const idx_t* lengths,
        uint64_t words,
        uint32_t* bits) {
    forWords(
            lists,
            0,
            words,
            [&](uint64_t word, uint32_t list, uint32_t vector, bool isThere) {
                const uint32_t kept = __ballot_sync(
                        kFullWarp, isThere && idx_t(vector) < lengths[list]);
                if (threadIdx.x % kWarpSize == 0) {
                    bits[word] &= kept;
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
    findMoversKernel<<<blocksForWords(words, kThreads), kThreads, 0, stream>>>(
            params, words);
    BITS_CUDA_CHECK(cudaGetLastError());
    const int numCodes = numCodesOf(lists);
    const int bits = bitsOfCodes(lists);
    if (vectorsShareBytes(lists)) {
        return launchMoves(params, MoveOfBits{numCodes, bits}, words, stream);
    }
    const auto movePieces = [&]<ListLayout kLayout, class Piece>(int pieces) {
        launchMoves(
                params, MoveOfPieces<kLayout, Piece>{pieces}, words, stream);
    };
    constexpr auto kRows = ListLayout::Rows;
    constexpr auto kInterleaved = ListLayout::Interleaved;
    if (lists.layout == ListLayout::Rows) {
        const idx_t bytes = (idx_t(numCodes) * bits + 7) / 8;
        return bytes % 4 == 0
                ? movePieces.template operator()<kRows, uint32_t>(
                          int(bytes / 4))
                : movePieces.template operator()<kRows, uint8_t>(int(bytes));
    }
    switch (bits) {
        case 32:
            return movePieces.template operator()<kInterleaved, uint32_t>(
                    numCodes);
        case 16:
            return movePieces.template operator()<kInterleaved, uint16_t>(
                    numCodes);
        default:
            return movePieces.template operator()<kInterleaved, uint8_t>(
                    numCodes);
    }
}

void runIvfClearBehind(const IvfLists& lists, cudaStream_t stream) {
    if (!vectorsShareBytes(lists)) {
        return;
    }
    clearBehindKernel<<<
            unsigned(std::min<idx_t>(
                    (lists.numLists * kWarpSize + kThreads - 1) / kThreads,
                    kMaxBlocks)),
            kThreads,
            0,
            stream>>>(lists, numCodesOf(lists), bitsOfCodes(lists));
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runIvfDropBehind(
        const IvfLists& lists,
        const idx_t* lengths,
        uint32_t* bits,
        cudaStream_t stream) {
    const idx_t words = ivfFilterWords(lists);
    dropBehindKernel<<<blocksForWords(words, kThreads), kThreads, 0, stream>>>(
            lists, lengths, words, bits);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
