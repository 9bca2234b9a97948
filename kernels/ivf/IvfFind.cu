#include "kernels/ivf/IvfFind.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"
#include "kernels/ivf/IvfIdTable.cuh"
#include "kernels/ivf/ListWords.cuh"
#include "kernels/ivf/ScalarSteps.cuh"
#include "kernels/ivf/WithCoding.h"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr idx_t kMaxBlocks = 1 << 16; // the kernels stride over the rest
constexpr uint64_t kNoPlace = ~uint64_t(0);
constexpr idx_t kNoKey = -1; // of given keys

/// The table of the keys, and of each of its places list << 32 | place of the
/// vector with that id. A range of keys needs no table: places are numbers.
struct Find {
    IvfKeys keys;
    IvfIdTable table;
    uint64_t* found = nullptr; // [mask + 2]

    Find(const IvfKeys& which, WorkspaceSlices& slices) : keys(which) {
        const idx_t capacity = IvfIdTable::capacityFor(keys.count);
        table.mask = uint64_t(capacity) - 1;
        table.places = slices.take<uint64_t>(size_t(capacity));
        table.hasEmpty = slices.take<uint32_t>(1);
        found = slices.take<uint64_t>(size_t(capacity) + 1);
    }

    __device__ __forceinline__ uint64_t at(idx_t id) const {
        if (keys.keys) {
            return table.find(id);
        }
        return id >= keys.first && id - keys.first < keys.count
                ? uint64_t(id - keys.first)
                : IvfIdTable::kNowhere;
    }
};

__global__ __launch_bounds__(kThreads) void insertKeysKernel(
        const __grid_constant__ Find find) {
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x;
         i < find.keys.count;
         i += idx_t(gridDim.x) * kThreads) {
        find.table.insert(find.keys.keys[i]);
    }
}

__global__ __launch_bounds__(kThreads) void findKernel(
        const __grid_constant__ IvfSlots slots,
        const __grid_constant__ Find find) {
    forWords(
            slots.lists,
            slots.firstWord,
            slots.firstWord + slots.numWords,
            [&](uint64_t word, uint32_t list, uint32_t vector, bool isThere) {
                if (!isThere) {
                    return;
                }
                const uint64_t at =
                        find.at(idOfSlot(slots, word, list, vector));
                if (at != IvfIdTable::kNowhere) {
                    atomicMin(
                            reinterpret_cast<unsigned long long*>(
                                    find.found + at),
                            uint64_t(list) << 32 | vector);
                }
            });
}

/// Of key number i its place, list << 32 | place; kNoPlace.
__device__ __forceinline__ uint64_t placeOfKey(const Find& find, idx_t i) {
    const idx_t key = find.keys.keys ? find.keys.keys[i] : find.keys.first + i;
    if (find.keys.keys && key == kNoKey) {
        return kNoPlace;
    }
    const uint64_t at = find.at(key);
    return at == IvfIdTable::kNowhere ? kNoPlace : find.found[at];
}

__global__ __launch_bounds__(kThreads) void missingKernel(
        const __grid_constant__ Find find,
        idx_t firstNumber,
        uint64_t* missing) {
    for (idx_t i = idx_t(blockIdx.x) * kThreads + threadIdx.x;
         i < find.keys.count;
         i += idx_t(gridDim.x) * kThreads) {
        const bool isNone = find.keys.keys && find.keys.keys[i] == kNoKey;
        if (!isNone && placeOfKey(find, i) == kNoPlace) {
            atomicMin(
                    reinterpret_cast<unsigned long long*>(missing),
                    uint64_t(firstNumber + i));
        }
    }
}

__global__ __launch_bounds__(kThreads) void stepsKernel(
        const __grid_constant__ IvfParams params) {
    writeScalarSteps(params);
}

/// A warp a key.
template <ListCoding kCoding>
__global__ __launch_bounds__(kThreads) void takeFoundKernel(
        const __grid_constant__ IvfParams params,
        const __grid_constant__ Find find,
        float* out) {
    VectorsOfLists<kCoding>::with(params, [&](const auto& vectors) {
        const int lane = threadIdx.x % kWarpSize;
        const idx_t warps = idx_t(gridDim.x) * (kThreads / kWarpSize);
        for (idx_t i = idx_t(blockIdx.x) * (kThreads / kWarpSize) +
                     threadIdx.x / kWarpSize;
             i < find.keys.count;
             i += warps) {
            const uint64_t place = placeOfKey(find, i);
            float* to = out + i * params.d;
            if (place == kNoPlace) {
                for (int c = lane; c < params.d; c += kWarpSize) {
                    to[c] = 0;
                }
                continue;
            }
            TilePlace tile{};
            tile.first = int64_t(uint32_t(place));
            tile.last = tile.first + 1;
            tile.listNumber = uint32_t(place >> 32);
            tile.list = params.lists.vectors[tile.listNumber];
            const auto vector = vectors.vector(tile, 0);
            for (int c = lane; c < params.d; c += kWarpSize) {
                to[c] = vector(c);
            }
        }
    });
}

unsigned blocksFor(idx_t threads) {
    return unsigned(std::clamp<idx_t>(
            (threads + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

/// What decodes vectors behind the table.
IvfParams takeParams(const IvfLists& lists, WorkspaceSlices& slices) {
    IvfParams params;
    params.lists = lists;
    params.d = lists.d;
    if (isScalar(lists.coding)) {
        params.starts = slices.take<float>(size_t(lists.d));
        params.steps = slices.take<float>(size_t(lists.d));
    }
    return params;
}

} // namespace

size_t ivfFindWorkspaceBytes(const IvfLists& lists, idx_t count) {
    IvfKeys keys;
    keys.count = count;
    WorkspaceSlices slices;
    Find(keys, slices);
    takeParams(lists, slices);
    return slices.used();
}

void runIvfBeginFind(
        const IvfKeys& keys,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const Find find(keys, slices);
    const size_t capacity = size_t(find.table.mask) + 1;
    BITS_CUDA_CHECK(cudaMemsetAsync(
            find.found, 0xFF, (capacity + 1) * sizeof(uint64_t), stream));
    if (!keys.keys) {
        return;
    }
    BITS_CUDA_CHECK(cudaMemsetAsync(
            find.table.places,
            IvfIdTable::kEmptyByte,
            capacity * sizeof(uint64_t),
            stream));
    BITS_CUDA_CHECK(
            cudaMemsetAsync(find.table.hasEmpty, 0, sizeof(uint32_t), stream));
    insertKeysKernel<<<blocksFor(keys.count), kThreads, 0, stream>>>(find);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runIvfFind(
        const IvfSlots& slots,
        const IvfKeys& keys,
        Workspace workspace,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    findKernel<<<
            blocksForWords(slots.numWords, kThreads),
            kThreads,
            0,
            stream>>>(slots, Find(keys, slices));
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runIvfMissing(
        const IvfKeys& keys,
        Workspace workspace,
        idx_t firstNumber,
        uint64_t* missing,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    missingKernel<<<blocksFor(keys.count), kThreads, 0, stream>>>(
            Find(keys, slices), firstNumber, missing);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void runIvfTakeFound(
        const IvfLists& lists,
        const IvfKeys& keys,
        Workspace workspace,
        float* out,
        cudaStream_t stream) {
    WorkspaceSlices slices(workspace);
    const Find find(keys, slices);
    const IvfParams params = takeParams(lists, slices);
    if (params.steps) {
        stepsKernel<<<1, kThreads, 0, stream>>>(params);
        BITS_CUDA_CHECK(cudaGetLastError());
    }
    withCoding(lists.coding, [&](auto coding) {
        takeFoundKernel<coding()>
                <<<blocksFor(keys.count * kWarpSize), kThreads, 0, stream>>>(
                        params, find, out);
    });
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace faiss_bits
