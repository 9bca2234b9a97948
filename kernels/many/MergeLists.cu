#include "kernels/many/MergeLists.h"

#include <algorithm>
#include <cfloat>

#include "kernels/common/CudaCheck.h"
#include "kernels/device/Entry.cuh"

namespace faiss_bits {

namespace {

constexpr int kBlock = 256;
/// Keys that a row may have in shared memory, by the threads that work on it.
constexpr int kWarpKeys = 1024;
constexpr int kBlockKeys = 8192;
/// Candidates of a row that one block takes where there are few rows.
constexpr idx_t kPartOfRow = 2048;
constexpr idx_t kManyBlocks = 2048;

struct MergeParams {
    MergeList lists[kMaxMergeLists];
    int numLists = 0;
    uint32_t k = 0;
    idx_t rows = 0;
    /// Lists of `boundWidth` and more hold k together in their first `bound`;
    /// 0: no such number.
    uint32_t bound = 0;
    uint32_t parts = 1; // blocks of a row
    bool largest = false;
    float* outDistances = nullptr; // [rows, k]
    idx_t* outIds = nullptr;       // [rows, k]
    const float* limits = nullptr; // [rows]
    uint8_t* incomplete = nullptr; // [rows]
};
static_assert(sizeof(MergeParams) <= 4096, "kernel arguments of all devices");

template <int Threads>
__device__ __forceinline__ void syncRow() {
    if constexpr (Threads == 32) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

/// Elements in front of which `isBefore` holds, of [0, n) with all of these
/// first.
template <class IsBefore>
__device__ __forceinline__ uint32_t
countWhile(uint32_t n, const IsBefore& isBefore) {
    uint32_t low = 0;
    uint32_t high = n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (isBefore(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/// The lists of one row.
struct MergeRow {
    const MergeParams& p;
    idx_t row;

    __device__ __forceinline__ float distance(int list, uint32_t at) const {
        const MergeList& l = p.lists[list];
        return l.distances[size_t(row) * l.width + at];
    }
    __device__ __forceinline__ uint32_t key(int list, uint32_t at) const {
        const float d = distance(list, at);
        return orderedKey(p.largest ? -d : d);
    }
    /// True if lists have all that is no worse than limitKey().
    __device__ __forceinline__ bool isLimited() const {
        return p.limits && isfinite(p.limits[row]);
    }
    __device__ __forceinline__ uint32_t limitKey() const {
        return orderedKey(p.largest ? -p.limits[row] : p.limits[row]);
    }
    __device__ __forceinline__ idx_t rawId(int list, uint32_t at) const {
        const MergeList& l = p.lists[list];
        return l.ids[size_t(row) * l.width + at];
    }
    __device__ __forceinline__ idx_t id(int list, uint32_t at) const {
        return rawId(list, at) + p.lists[list].idOffset;
    }
    /// Results of a list; behind them there is nothing.
    __device__ __forceinline__ uint32_t results(int list) const {
        const uint32_t width = uint32_t(p.lists[list].width);
        if (width == 0 || rawId(list, width - 1) != -1) {
            return width;
        }
        return countWhile(
                width, [&](uint32_t at) { return rawId(list, at) != -1; });
    }
};

/// Writes what element (list, at) of this key is, if it is one of the k best.
/// keyAt(t, i) is the key of element i of list t, counts the candidates of each
/// list.
template <bool ById, class KeyAt>
__device__ __forceinline__ void placeElement(
        const MergeRow& row,
        const uint32_t* counts,
        const KeyAt& keyAt,
        int list,
        uint32_t at) {
    const MergeParams& p = row.p;
    const uint32_t key = keyAt(list, at);
    const idx_t id = ById ? row.id(list, at) : 0;
    uint32_t rank = at;
    for (int t = 0; t < p.numLists && rank < p.k; ++t) {
        if (t == list) {
            continue;
        }
        rank += countWhile(counts[t], [&](uint32_t i) {
            const uint32_t other = keyAt(t, i);
            if constexpr (ById) {
                if (other != key) {
                    return other < key;
                }
                const idx_t theirs = row.id(t, i);
                return theirs < id || (theirs == id && t < list);
            } else {
                return other < key || (other == key && t < list);
            }
        });
    }
    if (rank < p.k) {
        const size_t out = size_t(row.row) * p.k + rank;
        p.outDistances[out] = row.distance(list, at);
        p.outIds[out] = ById ? id : row.id(list, at);
        const MergeList& from = p.lists[list];
        if (from.isCut && at + 1 == from.width) {
            p.incomplete[row.row] = 1;
        }
        if (rank + 1 == p.k && row.isLimited() && key > row.limitKey()) {
            p.incomplete[row.row] = 1;
        }
    }
}

/// `Threads` threads a row, or a part of one.
template <int Threads, int MaxKeys, bool ById>
__global__ void __launch_bounds__(kBlock)
        mergeListsKernel(const __grid_constant__ MergeParams p) {
    constexpr int kRows = kBlock / Threads;
    __shared__ uint32_t allKeys[kRows][MaxKeys];
    __shared__ uint32_t allCounts[kRows][kMaxMergeLists];
    __shared__ uint32_t allFirsts[kRows][kMaxMergeLists + 1];
    __shared__ uint32_t allBounds[kRows];

    const int local = threadIdx.x / Threads;
    const int lane = threadIdx.x % Threads;
    const MergeRow row{p, idx_t(blockIdx.x) * kRows + local};
    if (row.row >= p.rows) {
        return; // a warp of its own: nobody waits for it
    }
    uint32_t* const keys = allKeys[local];
    uint32_t* const counts = allCounts[local];
    uint32_t* const firsts = allFirsts[local];

    // The k-th best is no worse than the bound, and what is worse is out.
    if (lane == 0) {
        allBounds[local] = p.bound == 0 ? kNanKey : 0;
    }
    syncRow<Threads>();
    for (int t = lane; t < p.numLists; t += Threads) {
        counts[t] = row.results(t);
        if (p.bound > 0 && p.lists[t].width >= p.bound) {
            atomicMax(
                    &allBounds[local],
                    counts[t] >= p.bound ? row.key(t, p.bound - 1) : kNanKey);
        }
    }
    syncRow<Threads>();
    const uint32_t bound = allBounds[local];
    if (bound != kNanKey) {
        for (int t = lane; t < p.numLists; t += Threads) {
            counts[t] = countWhile(counts[t], [&](uint32_t at) {
                return row.key(t, at) <= bound;
            });
        }
    }
    syncRow<Threads>();
    if (lane == 0) {
        uint32_t sum = 0;
        for (int t = 0; t < p.numLists; ++t) {
            firsts[t] = sum;
            sum += counts[t];
        }
        firsts[p.numLists] = sum;
    }
    syncRow<Threads>();
    const uint32_t total = firsts[p.numLists];

    const auto forEach = [&](uint32_t begin, uint32_t end, const auto& call) {
        int list = 0;
        for (size_t i = size_t(begin) + lane; i < end; i += Threads) {
            while (i >= firsts[list + 1]) {
                ++list;
            }
            call(list, uint32_t(i - firsts[list]));
        }
    };
    const uint32_t begin = uint32_t(uint64_t(total) * blockIdx.y / p.parts);
    const uint32_t end = uint32_t(uint64_t(total) * (blockIdx.y + 1) / p.parts);
    if (total <= MaxKeys) {
        forEach(0, total, [&](int list, uint32_t at) {
            keys[firsts[list] + at] = row.key(list, at);
        });
        syncRow<Threads>();
        const auto keyAt = [&](int list, uint32_t at) {
            return keys[firsts[list] + at];
        };
        forEach(begin, end, [&](int list, uint32_t at) {
            placeElement<ById>(row, counts, keyAt, list, at);
        });
    } else {
        const auto keyAt = [&](int list, uint32_t at) {
            return row.key(list, at);
        };
        forEach(begin, end, [&](int list, uint32_t at) {
            placeElement<ById>(row, counts, keyAt, list, at);
        });
    }
    if (blockIdx.y == 0) {
        if (lane == 0 && total < p.k && row.isLimited()) {
            p.incomplete[row.row] = 1;
        }
        for (size_t i = size_t(total) + lane; i < p.k; i += Threads) {
            p.outDistances[size_t(row.row) * p.k + i] =
                    p.largest ? -FLT_MAX : FLT_MAX;
            p.outIds[size_t(row.row) * p.k + i] = -1;
        }
    }
}

void checkMerge(const MergeProblem& p) {
    constexpr idx_t kEnd = idx_t(1) << 31;
    BITS_THROW_IF_NOT_FMT(
            p.rows >= 0 && p.rows < kEnd,
            "rows = %lld is outside 0..2^31 - 1",
            (long long)p.rows);
    BITS_THROW_IF_NOT_FMT(
            p.k >= 1 && p.k < kEnd,
            "k = %lld is outside 1..2^31 - 1",
            (long long)p.k);
    BITS_THROW_IF_NOT_FMT(
            p.lists.size() <= kMaxMergeLists,
            "lists.size() = %zu is more than %d",
            p.lists.size(),
            kMaxMergeLists);
    idx_t widths = 0;
    for (size_t i = 0; i < p.lists.size(); ++i) {
        const MergeList& list = p.lists[i];
        BITS_THROW_IF_NOT_FMT(
                list.width >= 0 && list.width < kEnd,
                "lists[%zu].width = %lld is outside 0..2^31 - 1",
                i,
                (long long)list.width);
        if (list.width > 0 && p.rows > 0) {
            BITS_THROW_IF_NOT_FMT(
                    list.distances, "lists[%zu].distances = nullptr", i);
            BITS_THROW_IF_NOT_FMT(list.ids, "lists[%zu].ids = nullptr", i);
        }
        widths += list.width;
        BITS_THROW_IF_NOT_FMT(
                !list.isCut || p.incomplete || p.rows == 0,
                "incomplete = nullptr, but lists[%zu] is cut",
                i);
    }
    BITS_THROW_IF_NOT_FMT(
            !p.limits || p.incomplete || p.rows == 0,
            "incomplete = nullptr, but limits are given");
    BITS_THROW_IF_NOT_FMT(
            widths < 2 * kEnd,
            "the widths of all lists are %lld together, 2^32 - 1 is the most",
            (long long)widths);
    if (p.rows > 0) {
        BITS_THROW_IF_NOT_FMT(p.outDistances, "outDistances = nullptr");
        BITS_THROW_IF_NOT_FMT(p.outIds, "outIds = nullptr");
    }
}

/// The least b such that lists of b and more together hold k in their first b;
/// 0 if there is none.
uint32_t boundOf(const MergeProblem& p) {
    std::vector<idx_t> widths;
    for (const MergeList& list : p.lists) {
        widths.push_back(list.width);
    }
    std::sort(widths.rbegin(), widths.rend());
    for (size_t lists = widths.size(); lists > 0; --lists) {
        const idx_t bound = (p.k + idx_t(lists) - 1) / idx_t(lists);
        if (widths[lists - 1] >= bound) {
            return uint32_t(bound);
        }
    }
    return 0;
}

template <int Threads, int MaxKeys>
void launch(MergeParams params, bool byId, cudaStream_t stream) {
    constexpr int kRows = kBlock / Threads;
    const idx_t blocks = (params.rows + kRows - 1) / kRows;
    // Few rows of many results: several blocks a row.
    const idx_t wanted = (idx_t(params.k) + kPartOfRow - 1) / kPartOfRow;
    params.parts = uint32_t(std::clamp<idx_t>(
            std::min(wanted, kManyBlocks / std::max<idx_t>(blocks, 1)),
            1,
            65535));
    const dim3 grid{unsigned(blocks), params.parts};
    if (byId) {
        mergeListsKernel<Threads, MaxKeys, true>
                <<<grid, kBlock, 0, stream>>>(params);
    } else {
        mergeListsKernel<Threads, MaxKeys, false>
                <<<grid, kBlock, 0, stream>>>(params);
    }
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace

void runMergeLists(const MergeProblem& problem, cudaStream_t stream) {
    checkMerge(problem);
    if (problem.rows == 0) {
        return;
    }
    MergeParams params;
    for (const MergeList& list : problem.lists) {
        params.lists[params.numLists++] = list;
    }
    params.k = uint32_t(problem.k);
    params.rows = problem.rows;
    params.bound = boundOf(problem);
    params.largest = problem.largest;
    params.outDistances = problem.outDistances;
    params.outIds = problem.outIds;
    params.limits = problem.limits;
    params.incomplete = problem.incomplete;
    constexpr idx_t kOfOneWarp = 256;
    if (problem.k <= kOfOneWarp) {
        launch<32, kWarpKeys>(params, !problem.idsAscend, stream);
    } else {
        launch<kBlock, kBlockKeys>(params, !problem.idsAscend, stream);
    }
}

} // namespace faiss_bits
