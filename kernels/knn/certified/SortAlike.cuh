/// Rows whose candidates rankCandidates() left, as too many of them are alike
/// by their approximate keys to be compared one with another: they are sorted,
/// and the proof is made then. Included by ScanAgain.cuh.
///
/// Rows of which the candidates fit shared memory are sorted by a block each;
/// longer ones by all blocks together, as there may be one row alone.
#pragma once

#include "kernels/knn/certified/Rescore.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::sortAlike() {
    if (params.search.numCandidates > kSharedSort) {
        sortAlikeTogether();
    } else {
        sortAlikeRows();
    }
}

/// A block has every gridDim.x-th row, whatever the flags of others are: these
/// change meanwhile, so that blocks that listed flagged rows would not find the
/// same. Rows that are proved have no flags afterwards.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::sortAlikeRows() {
    const CertifiedParams& search = params.search;
    for (uint64_t base = blockIdx.x; base < search.rows;
         base += uint64_t(kThreads) * gridDim.x) {
        const uint64_t row = base + uint64_t(threadIdx.x) * gridDim.x;
        __syncthreads();
        if (threadIdx.x == 0) {
            shared.kept = 0;
        }
        __syncthreads();
        if (row < search.rows && search.flags[2 * row + 1] != 0) {
            shared.rows[atomicAdd(&shared.kept, 1u)] = uint32_t(row);
        }
        __syncthreads();
        const uint32_t count = shared.kept;
        for (uint32_t i = 0; i < count; ++i) {
            sortCandidates(shared.rows[i]);
        }
    }
}

template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::sortCandidates(
        uint32_t row) {
    const CertifiedParams& search = params.search;
    __syncthreads();
    const uint32_t count = uint32_t(countCandidates(search, row));
    const uint64_t* list = search.entries + int64_t(row) * search.numCandidates;
    uint64_t* const entries = shared.lists.sort;
    for (uint32_t first = 0; first < count; first += Pieces::kPiece) {
        Pieces::sort(shared.lists.pieces, list, entries, first, count);
    }
    const uint32_t k = uint32_t(search.k);
    uint64_t last = kNoEntry; // of the results, if this thread has it
    for (uint32_t i = threadIdx.x; i < max(count, k); i += kThreads) {
        last = min(last, placeCandidate(row, entries, count, i));
    }
    if (proveCandidates(row, entries, count, last)) {
        search.flags[2 * int64_t(row)] = 0;
        search.flags[2 * int64_t(row) + 1] = 0;
    }
}

/// Three steps, with the grid in step between them: pieces, places, and flags,
/// which others look at until then.
template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::sortAlikeTogether() {
    constexpr uint8_t kProved = 2; // in place of 1, "too many are alike"
    const auto grid = cooperative_groups::this_grid();
    const CertifiedParams& search = params.search;
    const uint32_t most = uint32_t(search.numCandidates);
    const auto forItems = [&](uint32_t used, uint32_t ofRow, auto visit) {
        for (uint64_t i = blockIdx.x; i < uint64_t(used) * ofRow;
             i += gridDim.x) {
            const uint32_t row = shared.rows[i / ofRow];
            if (search.flags[2 * int64_t(row) + 1] != 0) {
                visit(row,
                      uint32_t(i % ofRow),
                      search.entries + int64_t(row) * search.numCandidates,
                      uint32_t(countCandidates(search, row)));
            }
        }
    };
    bool areThere = false;
    uint32_t next = 0;
    for (uint32_t used; (used = takeRows(next)) > 0; areThere = true) {
        forItems(
                used,
                (most + Pieces::kPiece - 1) / Pieces::kPiece,
                [&](uint32_t, uint32_t i, uint64_t* entries, uint32_t count) {
                    __syncthreads();
                    Pieces::sort(
                            shared.lists.pieces,
                            entries,
                            entries,
                            i * Pieces::kPiece,
                            count);
                });
        grid.sync();
        forItems(
                used,
                (max(most, uint32_t(search.k)) + kThreads - 1) / kThreads,
                [&](uint32_t row,
                    uint32_t i,
                    uint64_t* entries,
                    uint32_t count) {
                    const uint64_t last = placeCandidate(
                            row, entries, count, i * kThreads + threadIdx.x);
                    if (proveCandidates(row, entries, count, last)) {
                        search.flags[2 * int64_t(row) + 1] = kProved;
                    }
                });
    }
    if (!areThere) {
        return;
    }
    grid.sync();
    for (int64_t row = blockIdx.x * kThreads + threadIdx.x; row < search.rows;
         row += gridDim.x * kThreads) {
        uint8_t* flags = search.flags + 2 * row;
        if (flags[1] == kProved) {
            flags[0] = flags[1] = 0;
        }
    }
}

/// Writes candidate i, or an empty place where there are no more. Returns it
/// if it is the last of the results; else kNoEntry. What is written of a row
/// that is not proved is written again later.
template <Metric kMetric, class Begin>
__device__ __forceinline__ uint64_t ScanAgain<kMetric, Begin>::placeCandidate(
        uint32_t row,
        const uint64_t* entries,
        uint32_t count,
        uint32_t i) {
    const uint32_t k = uint32_t(params.search.k);
    if (i >= count) {
        if (i < k) {
            writePlace<kMetric>(params.search, row, int(i), kNoEntry);
        }
        return kNoEntry;
    }
    const uint64_t mine = entries[i];
    const uint32_t place = Pieces::placeOf(entries, count, i);
    if (place < k) {
        writePlace<kMetric>(params.search, row, int(place), mine);
    }
    return place == min(k, count) - 1 ? mine : kNoEntry;
}

/// Whether the thread that has the last of the results can prove them, as
/// rankCandidates() does. All threads of the block call it.
template <Metric kMetric, class Begin>
__device__ __forceinline__ bool ScanAgain<kMetric, Begin>::proveCandidates(
        uint32_t row,
        const uint64_t* entries,
        uint32_t count,
        uint64_t last) {
    const CertifiedParams& search = params.search;
    if (!__syncthreads_or(last != kNoEntry)) {
        return false;
    }
    const RowBound<kMetric> bound =
            rowBound<kMetric, kThreads>(search, row, shared.norms);
    // A candidate that is no number says that their order is worth too little.
    if (last == kNoEntry || Pieces::greatest(entries, count) == kNoEntry) {
        return false;
    }
    if (count >= search.numAllowed) {
        return true;
    }
    const double key = keyValue(entryKey(last));
    const double error = bound.at(key);
    const double above = key + error;
    const float farthest =
            search.keys[int64_t(row) * search.numCandidates + count - 1];
    const bool isFar = count < uint32_t(search.numCandidates) ||
            double(kIsSimilarity<kMetric> ? -farthest : farthest) > above;
    return count >= uint32_t(search.k) && isFar && isfinite(above) &&
            isfinite(bound.leastFrom(key, error));
}

} // namespace faiss_bits
