#include "kernels/knn/line/SortedLineKernels.h"

#include <algorithm>

#include "kernels/canonical/RoundedOps.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/device/Bitonic.cuh"
#include "kernels/knn/line/LineNumber.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kQueriesOfBlock = 4; // of a warp each
constexpr uint32_t kLastColumn = 0xFFFFFFFEu;

__global__ __launch_bounds__(kThreads) void lineEntriesKernel(
        const __grid_constant__ SortedLineParams params) {
    const uint32_t step = gridDim.x * kThreads;
    for (uint64_t i = blockIdx.x * kThreads + threadIdx.x; i < params.n;
         i += step) {
        const float number = numberAt(params.vectors, params.type, i);
        params.entries[i] = makeEntry(orderedKey(number), uint32_t(i));
    }
}

/// How many of `size` pass, where those that do come first.
template <class Passes>
__device__ __forceinline__ uint32_t countPassing(uint32_t size, Passes passes) {
    uint32_t first = 0;
    while (size > 0) {
        const uint32_t half = size / 2;
        if (passes(first + half)) {
            first += half + 1;
            size -= half + 1;
        } else {
            size = half;
        }
    }
    return first;
}

/// What a query meets of the sorted entries: from both sides, outward, no
/// distance is less than the one before it, but it may be the same.
template <Metric kMetric>
struct LineSides {
    const uint64_t* entries;
    float query;
    // The left side from its end to its begin, the right one forward.
    uint32_t leftBegin = 0, leftEnd = 0, rightBegin = 0, rightEnd = 0;

    /// The lesser, the nearer. Of canonical sums only one slot is not zero.
    __device__ __forceinline__ uint32_t keyOf(float number) const {
        const double x = number;
        const double t = canonical::sub(x, query);
        return kMetric == Metric::L2
                ? orderedKey(__double2float_rn(canonical::mul(t, t)))
                : ~orderedKey(__double2float_rn(canonical::mul(x, query)));
    }
    __device__ __forceinline__ uint32_t keyAt(uint32_t place) const {
        return keyOf(keyValue(entryKey(entries[place])));
    }
    __device__ __forceinline__ uint32_t left(uint32_t i) const {
        return keyAt(leftEnd - 1 - i);
    }
    __device__ __forceinline__ uint32_t right(uint32_t i) const {
        return keyAt(rightBegin + i);
    }
    __device__ __forceinline__ uint32_t lefts() const {
        return leftEnd - leftBegin;
    }
    __device__ __forceinline__ uint32_t rights() const {
        return rightEnd - rightBegin;
    }

    /// All lanes of a warp; `n` entries.
    __device__ __forceinline__
    LineSides(const uint64_t* entries, uint32_t n, float query)
            : entries(entries), query(query) {
        const uint32_t lane = threadIdx.x % kWarpSize;
        const float infinity = __int_as_float(0x7F800000);
        // Entries below a number for even lanes, and those up to it for odd.
        const float numbers[] = {query, 0.0f, -infinity, infinity};
        float number = query;
#pragma unroll
        for (uint32_t i = 1; i < 4; ++i) {
            number = lane / 2 == i ? numbers[i] : number;
        }
        const uint64_t target =
                makeEntry(orderedKey(number), lane % 2 == 0 ? 0 : kLastColumn);
        const uint32_t found = countPassing(
                n, [&](uint32_t i) { return entries[i] < target; });
        const auto at = [&](int of) {
            return __shfl_sync(kFullWarp, found, of);
        };
        const uint32_t below = at(0), upTo = at(1), belowZero = at(2),
                       upToZero = at(3), finite = at(5), infinite = at(6),
                       all = at(7); // that are numbers
        if (query != query) {
            return; // all distances are NaN
        }
        if (kMetric == Metric::L2) {
            // An infinity less itself is NaN.
            leftEnd = below;
            rightBegin = fabsf(query) == infinity ? upTo : below;
            rightEnd = all;
        } else if (query == 0) {
            rightBegin = finite;
            rightEnd = infinite;
        } else if (fabsf(query) == infinity) {
            leftEnd = belowZero;
            rightBegin = upToZero;
            rightEnd = all;
        } else if (query > 0) {
            leftEnd = all;
        } else {
            rightEnd = all;
        }
    }
};

/// Places of entries that may be among the nearest: of the left side [leftTie,
/// + leftTies) and [left, + lefts), of the right one [right, + rights).
struct LinePlaces {
    uint32_t leftTie = 0, leftTies = 0;
    uint32_t left = 0, lefts = 0;
    uint32_t right = 0, rights = 0;
    uint32_t missing = 0; // that are as near as `limit`: those of least ids
    uint32_t limit = 0;   // key of the last result

    __device__ __forceinline__ uint32_t count() const {
        return leftTies + lefts + rights;
    }
    __device__ __forceinline__ uint32_t at(uint32_t i) const {
        return i < leftTies            ? leftTie + i
                : i < leftTies + lefts ? left + (i - leftTies)
                                       : right + (i - leftTies - lefts);
    }

    /// The `count` nearest, one or more, and others as near as the last of
    /// them, up to `room`. All lanes of a warp.
    template <class Sides>
    __device__ __forceinline__
    LinePlaces(const Sides& sides, uint32_t count, uint32_t room) {
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t least =
                count > sides.rights() ? count - sides.rights() : 0;
        lefts = least +
                countPassing(
                        min(count, sides.lefts()) - least, [&](uint32_t i) {
                            return sides.left(least + i) <=
                                    sides.right(count - 1 - least - i);
                        });
        rights = count - lefts;
        limit =
                max(lefts > 0 ? sides.left(lefts - 1) : 0,
                    rights > 0 ? sides.right(rights - 1) : 0);
        const bool hasMore =
                (lefts < sides.lefts() && sides.left(lefts) == limit) ||
                (rights < sides.rights() && sides.right(rights) == limit);
        uint32_t rightTies = 0;
        if (hasMore) {
            // Nearer than the limit, and not farther, of both sides.
            const bool isRight = lane & 2;
            const uint32_t found = countPassing(
                    isRight ? sides.rights() : sides.lefts(), [&](uint32_t i) {
                        const uint32_t key =
                                isRight ? sides.right(i) : sides.left(i);
                        return lane & 1 ? key <= limit : key < limit;
                    });
            lefts = __shfl_sync(kFullWarp, found, 0);
            leftTies = __shfl_sync(kFullWarp, found, 1) - lefts;
            rights = __shfl_sync(kFullWarp, found, 2);
            rightTies = __shfl_sync(kFullWarp, found, 3) - rights;
            leftTie = sides.leftEnd - lefts - leftTies;
            const uint32_t wanted = count - lefts - rights;
            if (lefts + rights + leftTies + rightTies > room) {
                const auto areEqual = [&](uint32_t first, uint32_t number) {
                    return number == 0 ||
                            entryKey(sides.entries[first]) ==
                            entryKey(sides.entries[first + number - 1]);
                };
                if (areEqual(leftTie, leftTies) &&
                    areEqual(sides.rightBegin + rights, rightTies)) {
                    // In the order of their ids.
                    leftTies = min(leftTies, wanted);
                    rightTies = min(rightTies, wanted);
                } else {
                    leftTies = rightTies = 0;
                    missing = wanted;
                }
            }
        }
        left = sides.leftEnd - lefts;
        right = sides.rightBegin;
        rights += rightTies;
    }
};

/// Of the threads of a query.
template <int kGroup>
__device__ __forceinline__ void sync() {
    if constexpr (kGroup == kWarpSize) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

/// Bitonic sort of `size` entries, a power of two, from the phase on that makes
/// runs of `run`. The threads have synchronised before, and have after.
template <int kGroup>
__device__ __forceinline__ void sortRuns(
        uint64_t* entries,
        uint32_t size,
        uint32_t run) {
    for (; run <= size; run *= 2) {
        for (uint32_t stride = run / 2; stride > 0; stride /= 2) {
            for (uint32_t i = threadIdx.x % kGroup; i < size / 2; i += kGroup) {
                const uint32_t first = 2 * i - (i & (stride - 1));
                const uint64_t a = entries[first];
                const uint64_t b = entries[first + stride];
                if ((b < a) == ((first & run) == 0)) {
                    entries[first] = b;
                    entries[first + stride] = a;
                }
            }
            sync<kGroup>();
        }
    }
}

/// A query by kGroup threads.
template <Metric kMetric, int kGroup>
__global__ __launch_bounds__(
        kGroup == kWarpSize ? kQueriesOfBlock * kWarpSize : kGroup) //
        void sortedLineKernel(const __grid_constant__ SortedLineParams params) {
    extern __shared__ uint64_t shared[];
    const uint32_t thread = threadIdx.x % kGroup;
    const uint32_t lane = threadIdx.x % kWarpSize;
    const int64_t query =
            int64_t(blockIdx.x) * (blockDim.x / kGroup) + threadIdx.x / kGroup;
    if (query >= params.numQueries) {
        return;
    }
    uint64_t* entries = shared + threadIdx.x / kGroup * params.room;
    const LineSides<kMetric> sides(
            params.entries,
            params.n,
            numberAt(params.queries, params.queryType, query));
    const uint32_t count = min(params.k, sides.lefts() + sides.rights());
    if (count > 0) {
        const LinePlaces places(sides, count, params.room);
        uint32_t size = places.count();
        for (uint32_t i = thread; i < size; i += kGroup) {
            const uint64_t entry = params.entries[places.at(i)];
            entries[i] = makeEntry(
                    sides.keyOf(keyValue(entryKey(entry))), entryColumn(entry));
        }
        // Of equal numbers the least id is met first, from the left side too.
        sync<kGroup>();
        uint32_t* words = reinterpret_cast<uint32_t*>(entries);
        const auto keyAt = [&](uint32_t i) { return words[2 * i + 1]; };
        const uint32_t lefts = places.leftTies + places.lefts;
        for (uint32_t i = thread; i < lefts; i += kGroup) {
            const uint32_t key = keyAt(i);
            if ((i > 0 && keyAt(i - 1) == key) ||
                (i + 1 < lefts && keyAt(i + 1) == key)) {
                const uint32_t first = countPassing(
                        lefts, [&](uint32_t j) { return keyAt(j) > key; });
                const uint32_t end = countPassing(
                        lefts, [&](uint32_t j) { return keyAt(j) >= key; });
                words[2 * i] = entryColumn(
                        params.entries[places.at(first + end - 1 - i)]);
            }
        }
        // Different numbers at the same distance, more than there is room for.
        if (places.missing > 0 && thread < kWarpSize) {
            uint32_t taken = 0;
            for (uint64_t i = lane;
                 taken < places.missing && i - lane < params.n;
                 i += kWarpSize) {
                const bool isIt = i < params.n &&
                        sides.keyOf(numberAt(params.vectors, params.type, i)) ==
                                places.limit;
                const uint32_t mask = __ballot_sync(kFullWarp, isIt);
                const uint32_t at = taken + __popc(mask & ((1u << lane) - 1));
                if (isIt && at < places.missing) {
                    entries[size + at] = makeEntry(places.limit, uint32_t(i));
                }
                taken += __popc(mask);
            }
        }
        size += places.missing;
        const uint32_t padded = size < 2 ? 2 : 2u << (31 - __clz(size - 1));
        for (uint32_t i = size + thread; i < padded; i += kGroup) {
            entries[i] = kNoEntry;
        }
        sync<kGroup>();
        // Far, near, far: one merge, but where different numbers are equally
        // near on one side.
        sortRuns<kGroup>(entries, padded, padded);
        bool isOff = false;
        for (uint32_t i = thread; i + 1 < size; i += kGroup) {
            isOff = isOff || entries[i + 1] < entries[i];
        }
        const bool isAnyOff = kGroup == kWarpSize ? __any_sync(kFullWarp, isOff)
                                                  : __syncthreads_or(isOff);
        if (isAnyOff) {
            sortRuns<kGroup>(entries, padded, 2);
        }
    }
    constexpr float kMost = 3.402823466e+38f;
    for (uint32_t i = thread; i < params.k; i += kGroup) {
        float distance = kMetric == Metric::L2 ? kMost : -kMost;
        int64_t id = -1;
        if (i < count) {
            const uint32_t key = entryKey(entries[i]);
            distance = keyValue(kMetric == Metric::L2 ? key : ~key);
            id = entryColumn(entries[i]);
        }
        const int64_t place = query * params.k + i;
        params.outDistances[place] = distance;
        if (params.ids64) {
            static_cast<int64_t*>(params.outIds)[place] = id;
        } else {
            static_cast<int32_t*>(params.outIds)[place] = int32_t(id);
        }
    }
}

template <Metric kMetric, int kGroup>
void launch(const SortedLineParams& params, cudaStream_t stream) {
    constexpr int kQueries = kGroup == kWarpSize ? kQueriesOfBlock : 1;
    const int64_t blocks = (params.numQueries + kQueries - 1) / kQueries;
    sortedLineKernel<kMetric, kGroup>
            <<<unsigned(blocks),
               kQueries * kGroup,
               kQueries * params.room * sizeof(uint64_t),
               stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace

void launchLineEntries(const SortedLineParams& params, cudaStream_t stream) {
    constexpr uint32_t kMostBlocks = 4096;
    const uint32_t blocks =
            std::min((params.n + kThreads - 1) / kThreads, kMostBlocks);
    lineEntriesKernel<<<blocks, kThreads, 0, stream>>>(params);
    BITS_CUDA_CHECK(cudaGetLastError());
}

void launchSortedLine(const SortedLineParams& params, cudaStream_t stream) {
    const bool isL2 = params.metric == Metric::L2;
    if (params.threads == kLineWarp) {
        isL2 ? launch<Metric::L2, kLineWarp>(params, stream)
             : launch<Metric::InnerProduct, kLineWarp>(params, stream);
    } else {
        isL2 ? launch<Metric::L2, kLineBlock>(params, stream)
             : launch<Metric::InnerProduct, kLineBlock>(params, stream);
    }
}

} // namespace faiss_bits
