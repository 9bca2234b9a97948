#include "kernels/knn/direct/DirectFew.h"

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/device/Narrow.cuh"
#include "kernels/survivors/WriteResult.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 1024;
/// Entries that are compared with each other. Where vectors lie in order, the
/// four keys of a load may all be among the best: four for each of the k.
constexpr uint32_t kRoom = 4 * kMostFewK;
/// Threads that find an entry's place together.
constexpr int kParts = 4;

/// A block's work on the keys of one query, of which each thread has kPacks
/// times four in registers.
template <int kPacks>
struct FewFinish {
    using Narrow = BlockNarrow<kThreads>;

    struct SharedStorage {
        Narrow::SharedStorage narrow;
        uint64_t entries[kRoom]; // by place, not by id
        uint32_t count;
    };

    SharedStorage& shared;
    const DirectFinishParams& params;
    const uint32_t row;

    __device__ __forceinline__ void run() {
        uint4 packs[kPacks];
        load(packs);
        uint64_t least = kNoEntry;
        forEach(packs, [&](uint64_t e) { least = e < least ? e : least; });
        const uint32_t k = uint32_t(params.k);
        // As many threads as k have all that is not above the limit.
        uint64_t limit = kNoEntry - 1;
        if (__syncthreads_count(least != kNoEntry) >= params.k) {
            const auto forLeast = [&](auto take) {
                if (least != kNoEntry) {
                    take(least);
                }
            };
            limit = Narrow{shared.narrow}.limit(forLeast, k, params.mostNear);
        }
        collect([&](auto take) { forEach(packs, take); }, limit);
        if (shared.count > kRoom) {
            collectCrowded(shared, params, row);
        }
        writeBest(shared.count);
    }

   private:
    __device__ __forceinline__ const uint4* keys() const {
        return reinterpret_cast<const uint4*>(
                params.direct.keys + size_t(row) * params.direct.stride);
    }

    __device__ __forceinline__ uint32_t fours() const {
        return uint32_t(params.direct.stride) / 4;
    }

    __device__ __forceinline__ void load(uint4 (&packs)[kPacks]) const {
#pragma unroll
        for (int i = 0; i < kPacks; ++i) {
            const uint32_t at = i * kThreads + threadIdx.x;
            packs[i] = at < fours()
                    ? keys()[at]
                    : make_uint4(kNanKey, kNanKey, kNanKey, kNanKey);
        }
    }

    /// Calls take(entry) for the numbers of this thread.
    template <class Take>
    __device__ __forceinline__ static void forEach(
            const uint4 (&packs)[kPacks],
            Take take) {
#pragma unroll
        for (int i = 0; i < kPacks; ++i) {
            forFour(packs[i], 4 * (i * kThreads + threadIdx.x), take);
        }
    }

    template <class Take>
    __device__ __forceinline__ static void forFour(
            const uint4& pack,
            uint32_t place,
            Take take) {
        const uint32_t four[] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            if (four[j] != kNanKey) {
                take(makeEntry(four[j], place + j));
            }
        }
    }

    /// Those that are not above the limit, as far as there is room. Begins and
    /// ends with the block in step.
    template <class ForEach>
    __device__ __forceinline__ void collect(ForEach forEach, uint64_t limit) {
        if (threadIdx.x == 0) {
            shared.count = 0;
        }
        __syncthreads();
        forEach([&](uint64_t e) {
            if (e <= limit) {
                const uint32_t to = atomicAdd(&shared.count, 1);
                if (to < kRoom) {
                    shared.entries[to] = e;
                }
            }
        });
        __syncthreads();
    }

    /// More than there is room for: a limit from all of them. Out of line and
    /// from memory, so that it costs the others no registers.
    __device__ static __noinline__ void collectCrowded(
            SharedStorage& shared,
            const DirectFinishParams& params,
            uint32_t row) {
        FewFinish few{shared, params, row};
        const auto forAll = [&](auto take) {
            for (uint32_t at = threadIdx.x; at < few.fours(); at += kThreads) {
                forFour(few.keys()[at], 4 * at, take);
            }
        };
        __syncthreads(); // all have read the count
        const uint64_t limit =
                Narrow{shared.narrow}.limit(forAll, uint32_t(params.k), kRoom);
        few.collect(forAll, limit);
    }

    /// An entry's place in the result is the number of those below it.
    __device__ __forceinline__ void writeBest(uint32_t count) const {
        const uint32_t part = threadIdx.x % kParts;
        for (uint32_t begin = 0; begin < count; begin += kThreads / kParts) {
            const uint32_t at = begin + threadIdx.x / kParts;
            const uint64_t entry = at < count ? shared.entries[at] : kNoEntry;
            const uint32_t place = entryColumn(entry);
            uint32_t id = place;
            if (params.direct.ids && at < count) {
                id = uint32_t(params.direct.ids[place]);
            }
            uint32_t below = 0;
            for (uint32_t j = part; j < count; j += kParts) {
                below += shared.entries[j] < entry;
            }
#pragma unroll
            for (int lanes = 1; lanes < kParts; lanes *= 2) {
                below += __shfl_xor_sync(kFullWarp, below, lanes);
            }
            if (part == 0 && at < count && below < uint32_t(params.k)) {
                writeResult<float>(
                        params, row, below, makeEntry(entryKey(entry), id));
            }
        }
        for (int p = int(count + threadIdx.x); p < params.k; p += kThreads) {
            writeResult<float>(params, row, p, kNoEntry);
        }
    }
};

template <int kPacks>
__global__ __launch_bounds__(kThreads) void directFewKernel(
        const __grid_constant__ DirectFinishParams params) {
    using Finish = FewFinish<kPacks>;
    __shared__ typename Finish::SharedStorage shared;
    allowNext();
    waitForPrevious();
    Finish{shared, params, blockIdx.x}.run();
}

/// If keys are as few as that.
template <int kPacks>
bool tryLaunch(
        const DirectFinishParams& params,
        unsigned rows,
        cudaStream_t stream) {
    if (params.direct.stride > idx_t(kPacks) * 4 * kThreads) {
        return false;
    }
    launchAfterPrevious(
            directFewKernel<kPacks>, rows, kThreads, 0, stream, params);
    return true;
}

} // namespace

void launchDirectFew(
        const DirectFinishParams& params,
        unsigned rows,
        cudaStream_t stream) {
    static_assert(kMostFewKeys == idx_t(8) * 4 * kThreads);
    BITS_THROW_IF_NOT_FMT(
            params.k >= 1 && params.k <= kMostFewK,
            "k = %d is outside 1..%d",
            params.k,
            kMostFewK);
    BITS_THROW_IF_NOT_FMT(
            params.direct.stride >= 0 && params.direct.stride <= kMostFewKeys,
            "stride = %lld is outside 0..%lld",
            (long long)params.direct.stride,
            (long long)kMostFewKeys);
    DirectFinishParams p = params;
    p.mostNear = mostNearGroups(uint32_t(p.k));
    tryLaunch<1>(p, rows, stream) || tryLaunch<4>(p, rows, stream) ||
            tryLaunch<8>(p, rows, stream);
}

} // namespace faiss_bits
