/// From candidates with approximate distances to results with canonical ones,
/// and to the proof that no vector is missing.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/certified/LongTerms.cuh"
#include "kernels/knn/certified/RowBound.cuh"

namespace faiss_bits {

constexpr int kRescoreThreads = 256;
/// Neighbours to a side that one candidate is compared with at most: rows with
/// more of them alike are left to SortAlike.cuh.
constexpr int kMostAlike = 256;

/// Entries of the candidates first .. last - 1 of a row, eight lanes each;
/// `entries` is that of candidate 0. All threads of the block call it.
template <Metric kMetric>
__device__ __forceinline__ void rescoreCandidates(
        const CertifiedParams& params,
        uint32_t row,
        int first,
        int last,
        uint64_t* entries) {
    constexpr int kGroups = kRescoreThreads / kPairLanes;
    const int32_t* columns =
            params.columns + int64_t(row) * params.numCandidates;
    const float* q = params.queries + int64_t(row) * params.d;
    const int group = threadIdx.x / kPairLanes;
    for (int base = first; base < last; base += kGroups) {
        const int i = base + group;
        int32_t column = i < last ? columns[i] : -1;
        if (params.listedIds && column >= 0) {
            column = params.listedIds[column];
        }
        double distance = 0;
        withVectors(params.vectors, [&](const auto* data) {
            distance = distanceOfPair<kMetric>(
                    params,
                    data + int64_t(max(column, 0)) * params.vectors.rowStride,
                    q,
                    column < 0 ? 0 : params.d);
        });
        if (i < last && threadIdx.x % kPairLanes == 0) {
            entries[i] = column < 0
                    ? kNoEntry
                    : distanceEntry<kMetric>(distance, uint32_t(column));
        }
    }
}

/// Candidates of a row that are not empty places.
__device__ __forceinline__ int countCandidates(
        const CertifiedParams& params,
        uint32_t row) {
    const int32_t* columns =
            params.columns + int64_t(row) * params.numCandidates;
    int low = 0;
    int high = params.numCandidates;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (columns[middle] >= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/// Writes the results among candidates i = first, first + step, ... of a row:
/// each counts the entries below its own. They come in the order of their
/// approximate keys, so only those within the bound can be out of order. The
/// flags of the row were set to 1 and 0 before.
template <Metric kMetric>
__device__ __forceinline__ void rankCandidates(
        const CertifiedParams& params,
        uint32_t row,
        const RowBound<kMetric>& bound,
        const uint64_t* entries,
        int count,
        int first,
        int step) {
    const float* keys = params.keys + int64_t(row) * params.numCandidates;
    const auto approximate = [&](int i) {
        return kIsSimilarity<kMetric> ? -keys[i] : keys[i];
    };
    uint8_t* flags = params.flags + 2 * int64_t(row);
    const bool all = count >= params.numAllowed;
    for (int i = first; i < count; i += step) {
        const uint64_t mine = entries[i];
        if (mine == kNoEntry) {
            // A number of an approximate distance, and none of a canonical
            // one: the order of the candidates says too little.
            flags[1] = 1;
            continue;
        }
        const double key = keyValue(entryKey(mine));
        const double error = bound.at(key);
        const double above = key + error;
        const double below = bound.leastFrom(key, error);
        const bool finite = isfinite(above) && isfinite(below);
        const int after = i + kMostAlike;
        const int before = i - kMostAlike;
        if ((after < count &&
             !(finite && double(approximate(after)) > above)) ||
            (before >= 0 && !(finite && double(approximate(before)) < below))) {
            flags[1] = 1;
            continue;
        }
        int rank = i;
        for (int j = i + 1; j < count; ++j) {
            if (finite && double(approximate(j)) > above) {
                break;
            }
            rank += entries[j] < mine;
        }
        for (int j = i - 1; j >= 0; --j) {
            if (finite && double(approximate(j)) < below) {
                break;
            }
            rank -= entries[j] > mine;
        }
        if (rank < params.k) {
            writePlace<kMetric>(params, row, rank, mine);
        }
        if (rank == min(params.k, count) - 1) {
            // A vector that is no candidate is not nearer than the last one,
            // by its approximate key; with places left, that key is NaN.
            const bool far = count < params.numCandidates ||
                    double(approximate(count - 1)) > above;
            if (all || (finite && far && count >= params.k)) {
                flags[0] = 0;
            }
        }
    }
}

/// A query that is not a number has no neighbours. True if it is such a one,
/// and all its places are empty then.
template <Metric kMetric>
__device__ __forceinline__ bool answerNan(
        const CertifiedParams& params,
        uint32_t row,
        const RowBound<kMetric>& bound,
        int first,
        int step) {
    if (bound.norm == bound.norm) {
        return false;
    }
    for (int i = first; i < params.k; i += step) {
        writePlace<kMetric>(params, row, i, kNoEntry);
    }
    if (first == 0) {
        params.flags[2 * int64_t(row)] = 0;
    }
    return true;
}

/// Places that no candidate can fill, where all vectors are candidates.
template <Metric kMetric>
__device__ __forceinline__ void fillEmptyPlaces(
        const CertifiedParams& params,
        uint32_t row,
        int count,
        int first,
        int step) {
    if (count < params.numAllowed) {
        return;
    }
    for (int i = first; i < params.k; i += step) {
        if (i >= count) {
            writePlace<kMetric>(params, row, i, kNoEntry);
        }
    }
    if (count == 0 && first == 0) {
        params.flags[2 * int64_t(row)] = 0;
    }
}

/// A block a row, candidates in shared memory.
template <Metric kMetric>
__global__ __launch_bounds__(kRescoreThreads) void rescoreRowKernel(
        const CertifiedParams params) {
    extern __shared__ uint64_t entriesOfRow[];
    __shared__ double norms[2 * kRescoreThreads / kWarpSize];
    waitForPrevious();
    const uint32_t row = blockIdx.x;
    if (threadIdx.x == 0) {
        params.flags[2 * int64_t(row)] = 1;
        params.flags[2 * int64_t(row) + 1] = 0;
    }
    const auto bound = rowBound<kMetric, kRescoreThreads>(params, row, norms);
    if (answerNan<kMetric>(params, row, bound, threadIdx.x, kRescoreThreads)) {
        return;
    }
    rescoreCandidates<kMetric>(
            params, row, 0, params.numCandidates, entriesOfRow);
    __syncthreads();
    const int count = countCandidates(params, row);
    rankCandidates<kMetric>(
            params,
            row,
            bound,
            entriesOfRow,
            count,
            threadIdx.x,
            kRescoreThreads);
    fillEmptyPlaces<kMetric>(params, row, count, threadIdx.x, kRescoreThreads);
}

/// Several blocks a row (y): the entries to memory.
template <Metric kMetric>
__global__ __launch_bounds__(kRescoreThreads) void rescoreKernel(
        const CertifiedParams params) {
    constexpr int kPerBlock = kRescoreThreads / kPairLanes;
    waitForPrevious();
    for (uint32_t row = blockIdx.y; row < params.rows; row += gridDim.y) {
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            params.flags[2 * int64_t(row)] = 1;
            params.flags[2 * int64_t(row) + 1] = 0;
        }
        uint64_t* entries =
                params.entries + int64_t(row) * params.numCandidates;
        for (int first = blockIdx.x * kPerBlock; first < params.numCandidates;
             first += gridDim.x * kPerBlock) {
            rescoreCandidates<kMetric>(
                    params,
                    row,
                    first,
                    min(first + kPerBlock, params.numCandidates),
                    entries);
        }
    }
}

/// Several blocks a row (y): from the entries in memory to results.
template <Metric kMetric>
__global__ __launch_bounds__(kRescoreThreads) void rankKernel(
        const CertifiedParams params) {
    __shared__ double norms[2 * kRescoreThreads / kWarpSize];
    waitForPrevious();
    for (uint32_t row = blockIdx.y; row < params.rows; row += gridDim.y) {
        const auto bound =
                rowBound<kMetric, kRescoreThreads>(params, row, norms);
        const int first = blockIdx.x * kRescoreThreads + threadIdx.x;
        const int step = gridDim.x * kRescoreThreads;
        if (answerNan<kMetric>(params, row, bound, first, step)) {
            continue;
        }
        const uint64_t* entries =
                params.entries + int64_t(row) * params.numCandidates;
        const int count = countCandidates(params, row);
        rankCandidates<kMetric>(
                params, row, bound, entries, count, first, step);
        fillEmptyPlaces<kMetric>(params, row, count, first, step);
    }
}

} // namespace faiss_bits
