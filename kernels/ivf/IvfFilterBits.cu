#include "kernels/ivf/IvfFilterBits.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DependentLaunch.h"
#include "kernels/ivf/IvfIdTable.cuh"
#include "kernels/ivf/IvfIdTest.cuh"
#include "kernels/ivf/ListWords.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr idx_t kMaxBlocks = 1 << 16; // the kernels stride over the rest

struct InRange {
    static constexpr bool kReadsIds = true;
    idx_t first;
    idx_t end;

    __device__ bool operator()(idx_t id) const {
        return id >= first && id < end;
    }
};

struct Always {
    static constexpr bool kReadsIds = false;
    bool isSelected;

    __device__ bool operator()(idx_t) const {
        return isSelected;
    }
};

struct InTable {
    static constexpr bool kReadsIds = true;
    IvfIdTable table;

    __device__ bool operator()(idx_t id) const {
        return table.find(id) != IvfIdTable::kNowhere;
    }
};

struct InBytes {
    static constexpr bool kReadsIds = true;
    const uint8_t* bytes;
    idx_t first;
    idx_t count;

    __device__ bool operator()(idx_t id) const {
        const idx_t byte = id >> 3; // below zero for what is below zero
        return byte >= first && byte - first < count &&
                (bytes[byte - first] >> (id & 7) & 1);
    }
};

struct ByIdTest {
    static constexpr bool kReadsIds = true;
    ListIdTest test;

    __device__ bool operator()(idx_t id) const {
        return passesIdTest(test, id);
    }
};

enum class Write : uint8_t { Set, Add, Without };

template <class Test>
struct SlotBitsParams {
    IvfSlots slots;
    Test test;
    uint32_t* bits = nullptr;
    /// [numLists]: lists of which this is 0 need no bits. nullptr: all do
    const uint32_t* counts = nullptr;
};

/// Set: what the test says; Add: that too; Without: that, but not what was
/// there.
template <Write kWrite, class Test>
__global__ __launch_bounds__(kThreads) void slotBitsKernel(
        const __grid_constant__ SlotBitsParams<Test> params) {
    allowNext();
    waitForPrevious();
    const IvfSlots& slots = params.slots;
    uint32_t* bits = params.bits;
    const auto isWanted = [&](uint32_t list) {
        return !params.counts || params.counts[list] > 0;
    };
    const auto idOf = [&](uint64_t word, uint32_t list, uint32_t vector) {
        return Test::kReadsIds ? idOfSlot(slots, word, list, vector) : 0;
    };
    forWordsOfIds(
            slots.lists,
            slots.firstWord,
            slots.firstWord + slots.numWords,
            isWanted,
            idOf,
            params.test,
            [&](uint64_t word, uint32_t found) {
                if constexpr (kWrite == Write::Set) {
                    bits[word] = found;
                } else if constexpr (kWrite == Write::Add) {
                    bits[word] |= found;
                } else {
                    bits[word] = found & ~bits[word];
                }
            });
}

template <Write kWrite, class Test>
void launch(
        const IvfSlots& slots,
        const Test& test,
        uint32_t* bits,
        cudaStream_t stream,
        const uint32_t* counts = nullptr) {
    if (slots.numWords == 0) {
        return;
    }
    launchAfterPrevious(
            slotBitsKernel<kWrite, Test>,
            dim3(blocksForWords(slots.numWords, kThreads)),
            kThreads,
            0,
            stream,
            SlotBitsParams<Test>{slots, test, bits, counts});
}

template <class Test>
void launchSetOrAdd(
        bool add,
        const IvfSlots& slots,
        const Test& test,
        uint32_t* bits,
        cudaStream_t stream) {
    add ? launch<Write::Add>(slots, test, bits, stream)
        : launch<Write::Set>(slots, test, bits, stream);
}

__global__ __launch_bounds__(kThreads) void insertIdsKernel(
        const __grid_constant__ IvfIdTable table,
        const idx_t* ids,
        idx_t numIds) {
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x; i < numIds;
         i += idx_t(gridDim.x) * kThreads) {
        table.insert(ids[i]);
    }
}

__global__ __launch_bounds__(kThreads) void gatherIdsKernel(
        const __grid_constant__ IvfSlots slots,
        idx_t* ids) {
    forWords(
            slots.lists,
            slots.firstWord,
            slots.firstWord + slots.numWords,
            [&](uint64_t word, uint32_t list, uint32_t vector, bool isThere) {
                if (isThere) {
                    ids[(word - slots.firstWord) * kListGroup +
                        vector % kListGroup] =
                            listId(slots.lists, list, vector);
                }
            });
}

struct TableSlices {
    IvfIdTable table;
    size_t bytes = 0;

    TableSlices(idx_t numIds, WorkspaceSlices& slices) {
        const idx_t capacity = IvfIdTable::capacityFor(numIds);
        table.places = slices.take<uint64_t>(size_t(capacity));
        table.mask = uint64_t(capacity) - 1;
        table.hasEmpty = slices.take<uint32_t>(1);
    }
};

} // namespace

idx_t ivfFilterWords(const IvfLists& lists) {
    if (lists.wordsOfList > 0) {
        return idx_t(lists.wordsOfList) * lists.numLists;
    }
    return lists.numVectors / kListGroup + lists.numLists;
}

uint32_t ivfWordsOfList(const IvfLists& lists, idx_t longestList) {
    constexpr idx_t kMostOfThose = 4;
    constexpr idx_t kMostWords = idx_t(1) << 31;
    const idx_t words =
            std::max<idx_t>((longestList + kListGroup - 1) / kListGroup, 1);
    const idx_t all = words * lists.numLists;
    const idx_t needed = lists.numVectors / kListGroup + lists.numLists;
    return all <= std::min(kMostWords, kMostOfThose * needed) ? uint32_t(words)
                                                              : 0;
}

void runIvfFirstWords(
        const IvfLists& lists,
        uint32_t* firstWords,
        cudaStream_t stream) {
    launchIvfGroups(lists, firstWords, stream);
}

void runIvfRangeBits(
        const IvfSlots& slots,
        idx_t first,
        idx_t end,
        uint32_t* bits,
        cudaStream_t stream) {
    launch<Write::Set>(slots, InRange{first, end}, bits, stream);
}

void runIvfAllBits(
        const IvfSlots& slots,
        bool all,
        uint32_t* bits,
        cudaStream_t stream) {
    launch<Write::Set>(slots, Always{all}, bits, stream);
}

size_t ivfIdBitsWorkspaceBytes(idx_t numIds) {
    WorkspaceSlices slices;
    TableSlices(numIds, slices);
    return slices.used();
}

void runIvfIdBits(
        const IvfSlots& slots,
        const idx_t* ids,
        idx_t numIds,
        bool add,
        Workspace workspace,
        uint32_t* bits,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const IvfIdTable table = TableSlices(numIds, slices).table;
    BITS_CUDA_CHECK(cudaMemsetAsync(
            table.places,
            IvfIdTable::kEmptyByte,
            (table.mask + 1) * sizeof(uint64_t),
            stream));
    BITS_CUDA_CHECK(
            cudaMemsetAsync(table.hasEmpty, 0, sizeof(uint32_t), stream));
    const idx_t blocks = std::max<idx_t>((numIds + kThreads - 1) / kThreads, 1);
    insertIdsKernel<<<
            unsigned(std::min(blocks, kMaxBlocks)),
            kThreads,
            0,
            stream>>>(table, ids, numIds);
    BITS_CUDA_CHECK(cudaGetLastError());
    launchSetOrAdd(add, slots, InTable{table}, bits, stream);
}

void runIvfByteBits(
        const IvfSlots& slots,
        const uint8_t* bytes,
        idx_t firstByte,
        idx_t numBytes,
        bool add,
        uint32_t* bits,
        cudaStream_t stream) {
    launchSetOrAdd(
            add, slots, InBytes{bytes, firstByte, numBytes}, bits, stream);
}

void runIvfTestedBits(
        const IvfLists& lists,
        const uint32_t* counts,
        uint32_t* bits,
        cudaStream_t stream) {
    IvfSlots slots;
    slots.lists = lists;
    slots.numWords = ivfFilterWords(lists);
    launch<Write::Set>(slots, ByIdTest{lists.idTest}, bits, stream, counts);
}

void runIvfInvertBits(
        const IvfSlots& slots,
        uint32_t* bits,
        cudaStream_t stream) {
    launch<Write::Without>(slots, Always{true}, bits, stream);
}

void runIvfGatherIds(const IvfSlots& slots, idx_t* ids, cudaStream_t stream) {
    if (slots.numWords == 0) {
        return;
    }
    gatherIdsKernel<<<
            blocksForWords(slots.numWords, kThreads),
            kThreads,
            0,
            stream>>>(slots, ids);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
