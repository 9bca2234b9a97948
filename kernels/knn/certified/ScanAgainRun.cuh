/// What ScanAgain does turn by turn, and of a turn step by step. Included by
/// ScanAgain.cuh.
#pragma once

#include "kernels/knn/certified/NearestFirst.cuh"
#include "kernels/knn/certified/ScanAgain.cuh"

namespace faiss_bits {

template <Metric kMetric, class Begin>
__device__ __forceinline__ void ScanAgain<kMetric, Begin>::run() {
    const auto grid = cooperative_groups::this_grid();
    const CertifiedParams& search = params.search;
    if constexpr (kLooksAtFirst<kMetric>) {
        if (!search.allowedBits) {
            grid.sync(); // as below
            params.keep <= kMostKeepOfWarp
                    ? takeNearestFirst<kMetric, kWarpSize, kThreads>(
                              search, params.keep)
                    : takeNearestFirst<kMetric, kThreads, kThreads>(
                              search, params.keep);
            grid.sync();
        }
    }
    if (params.mayBeAlike) {
        // All have asked whether there are flags: these change now, and a
        // block that finds none leaves the others waiting for it.
        grid.sync();
        sortAlike();
        grid.sync();
    }
    uint32_t next = 0;
    for (bool isFirst = true;; isFirst = false) {
        uint32_t used = takeRows(next);
        if (used == 0) {
            return;
        }
        if (isFirst && wantsGroups(used) && mayBeEqual()) {
            clearGroups();
            grid.sync();
            makeGroups();
            grid.sync();
            const uint32_t found = __ldcg(params.groups.count);
            numGroups = found <= params.groups.most ? found : 0;
        }
        if (numGroups > 0 && used > params.groups.room / numGroups) {
            used = params.groups.room / numGroups;
            next = shared.rows[used];
        }
        if (numGroups == 0) {
            makeTiles(used);
        }
        for (uint32_t s = threadIdx.x; s < used; s += kThreads) {
            shared.counts[s] = 0;
        }
        if (blockIdx.x == 0) {
            for (uint32_t s = threadIdx.x; s < used; s += kThreads) {
                params.counts[s] = 0;
                params.limits[s] = rankedLimit(shared.rows[s]);
            }
            if (threadIdx.x == 0 && search.numRepeated) {
                atomicAdd(search.numRepeated, used);
            }
        }
        grid.sync();
        // Whether limits are such that one step does.
        bool isKnown = numGroups > 0;
        if (isKnown) {
            findGroupKeys(used);
            grid.sync();
            findGroupLimits(used);
            grid.sync();
        }
        const uint32_t chunks = params.order.chunks;
        const int64_t room = params.capacity - mostKept();
        // Chunks of which all vectors have room; more may overflow.
        const uint32_t most = uint32_t(max(room / kChunk, int64_t(1)));
        const uint32_t growth = uint32_t(
                min(max(room / 2 / params.keep, int64_t(1)), kMostGrowth));
        const uint32_t firstStep = min(firstChunks(growth), most);
        uint32_t step = isKnown ? chunks : firstStep;
        if (!isKnown) {
            bool areLimited = false;
            if (params.areRanked || params.haveResults) {
                readLimits(used);
                areLimited = hasLimits(used);
            }
            isOne = takesOne(used);
            numRough = areLimited ? 0 : roughChunks(used);
            // Of a tile a block all take no longer than some.
            const bool isOneTile =
                    areLimited && chunks * tilesOf(used) <= gridDim.x;
            step = isOne || isOneTile ? chunks
                    : areLimited || numRough > 0
                    ? most
                    : fullTurns(firstStep, most, used);
        }
        uint32_t widest = chunks; // of a step
        for (uint32_t done = 0; done < chunks;) {
            step = min(step, (numRough > 0 ? numRough : chunks) - done);
            Begin::wait();
            readLimits(used);
            scanStep(done, step, used);
            grid.sync();
            if (isOne) {
                break; // that were all
            }
            if (isKnown && isAmiss(used)) {
                grid.sync();
                forgetStep(used);
                forgetCuts(used);
                grid.sync();
                isKnown = false;
                step = firstStep;
                continue;
            }
            if (step > most && !isKnown && isOverfull(used)) {
                grid.sync();
                forgetStep(used);
                grid.sync();
                step = widest = max(most, step / kShrink);
                continue;
            }
            const bool isLast = numRough == 0 && done + step == chunks;
            keepNearest(used, isLast);
            grid.sync();
            done += step;
            widest = min(2 * widest, chunks);
            step = uint32_t(
                    min(max(int64_t(most), int64_t(done) * growth),
                        int64_t(widest)));
            if (done == numRough) {
                forgetRough(used);
                grid.sync();
                // Of bounds that are alike all may pass.
                step = most;
                numRough = done = 0;
            }
        }
        if (isOne) {
            writeNearest(used);
        } else if (params.keep > kSharedSort) {
            finishTogether(used);
        } else {
            used > gridDim.x ? finishShort<kWarpSize>(used)
                             : finishShort<kThreads>(used);
            for (uint32_t s = blockIdx.x; s < used; s += gridDim.x) {
                finish(s);
            }
        }
        grid.sync(); // the lists are free again
    }
}

/// The next flagged rows from `next` on, at most as many as there are
/// slots, to shared.rows; the same in every block, which asks by itself.
template <Metric kMetric, class Begin>
__device__ __forceinline__ uint32_t
ScanAgain<kMetric, Begin>::takeRows(uint32_t& next) {
    const uint32_t most = min(params.slots, uint32_t(kMaxScanSlots));
    __syncthreads();
    return Flagged{shared.flagged, params.search.flags, params.search.rows}
            .take(next, most, shared.rows);
}

/// Of the first step. Where vectors are few and terms dear, as many as then
/// pass the limit that they set, and so many that one step more does.
template <Metric kMetric, class Begin>
__device__ __forceinline__ uint32_t
ScanAgain<kMetric, Begin>::firstChunks(uint32_t growth) const {
    const int64_t n = params.search.n;
    int64_t first = kFirstVectors + kFirstPerPlace * params.keep;
    if (!kIsOfProducts<kMetric>) {
        const int64_t balanced =
                max(int64_t(sqrtf(float(n) * float(params.keep))),
                    n / (growth + 1) + kChunk);
        first = min(first, balanced);
    }
    return uint32_t(max(first / kChunk, int64_t(1)));
}

/// Chunks of the first step, `first` or some more or fewer, up to `most`: a
/// step takes as long as the block with the most tiles of products, and two
/// steps are to have as few turns of all blocks as can be.
template <Metric kMetric, class Begin>
__device__ __forceinline__ uint32_t ScanAgain<kMetric, Begin>::fullTurns(
        uint32_t first,
        uint32_t most,
        uint32_t used) const {
    if (!kIsOfProducts<kMetric> || areFew(used)) {
        return first;
    }
    const uint32_t all = params.order.chunks;
    const uint32_t ofChunk = tilesOf(used) * kTilesOfChunk; // tiles
    const auto turnsOf = [&](uint32_t chunks) {
        return (chunks * ofChunk + gridDim.x - 1) / gridDim.x;
    };
    const auto turnsWith = [&](uint32_t chunks) {
        return turnsOf(chunks) + turnsOf(all - chunks);
    };
    first = min(first, all);
    if (all <= most && turnsOf(all) == 1) {
        return all;
    }
    // Fewer entries set a limit that more pass.
    const uint32_t least = (first + 1) / 2;
    const uint32_t turns = turnsOf(first);
    uint32_t best = first;
    for (uint32_t t = max(turns - 1, 1u); t <= turns; ++t) {
        const uint32_t full = min(t * gridDim.x / ofChunk, min(most, all));
        if (full >= least && turnsWith(full) < turnsWith(best)) {
            best = full;
        }
    }
    return best;
}

} // namespace faiss_bits
