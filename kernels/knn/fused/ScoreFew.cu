/// Canonical distances and results of rows of bits of which few are set, eight
/// lanes a row. A warp a row has no work for most of its lanes there, and no
/// sort is needed: lane i of the eight holds the i-th of the k nearest.
///
/// Bound by: reads of the queries where one passes; else the latency of what a
/// row takes one after the other, of many rows at once.
#include "kernels/knn/fused/ScoreFew.h"

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/common/PreferredL1.h"
#include "kernels/knn/fused/PassedResults.cuh"
#include "kernels/knn/fused/SlotQuery.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

/// kWords: of a lane. kFirst: k = 1.
template <int kSteps, int kWords, bool kFirst>
struct ScoreFew {
    static constexpr Metric kMetric = Metric::L2;
    using Query = SlotQuery<kMetric, kSteps>;
    /// Scored together; where one passes mostly, another is a read for nothing.
    static constexpr int kPairs = kFirst ? 1 : 2;

    const ScoreSlotsParams& params;
    uint32_t words[kWords]; // what is left of them

    /// All lanes of the warp call it. Returns the number of distances, to the
    /// first lane of the row.
    __device__ __forceinline__ uint32_t run(uint32_t row) {
        const CertifiedParams& search = params.passed.search;
        const uint32_t lane = threadIdx.x % kPairLanes;
        const bool isThere = row < search.rows;
        const uint32_t here = isThere ? row : 0;
        const Query query(search.queries + int64_t(here) * search.d, search.d);
        const uint32_t passed = read(here, isThere);
        const bool hasAll = passed <= uint32_t(search.numCandidates);
        if (!hasAll) { // it is searched again
#pragma unroll
            for (int w = 0; w < kWords; ++w) {
                words[w] = 0;
            }
        }
        uint64_t best = kNoEntry;
        for (;;) {
            uint32_t rows[kPairs];
            bool any[kPairs];
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                any[p] = take(rows[p]);
            }
            // Taken in order: no group has a second without a first.
            if (!__any_sync(kFullWarp, any[0])) {
                break;
            }
            uint32_t vectors[kPairs];
            const float4* from[kPairs];
            double exact[kPairs];
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                vectors[p] = any[p] ? params.words.rows.vectorOf(rows[p]) : 0;
                from[p] = params.slotRows +
                        size_t(vectors[p]) * Query::kRowPacks + lane;
            }
            query.distances(from, search.power, exact);
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                insert(any[p] ? distanceEntry<kMetric>(exact[p], vectors[p])
                              : kNoEntry,
                       best);
            }
        }
        if (!isThere) {
            return 0;
        }
        if (lane < uint32_t(search.k)) {
            writePlace<kMetric>(search, row, int(lane), best);
        }
        if (lane + 1 == uint32_t(search.k)) {
            search.flags[2 * int64_t(row)] =
                    !isProved(best, params.complete[row], hasAll);
            search.flags[2 * int64_t(row) + 1] = 0;
        }
        if (lane == 0) {
            params.words.counts[row] = passed;
        }
        return lane == 0 && hasAll ? passed : 0;
    }

   private:
    /// Returns how many bits the row has.
    __device__ __forceinline__ uint32_t read(uint32_t row, bool isThere) {
        const uint32_t lane = threadIdx.x % kPairLanes;
        const uint32_t* const bits =
                params.words.bits + size_t(row) * params.words.perRow;
        uint32_t count = 0;
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
            const uint32_t at = w * kPairLanes + lane;
            words[w] = isThere && at < params.words.perRow ? bits[at] : 0;
            count += __popc(words[w]);
        }
#pragma unroll
        for (int lanes = kPairLanes / 2; lanes >= 1; lanes /= 2) {
            count += __shfl_xor_sync(kFullWarp, count, lanes);
        }
        return count;
    }

    /// Takes a bit of the row: which one, to all of its lanes.
    __device__ __forceinline__ bool take(uint32_t& bit) {
        const uint32_t lane = threadIdx.x % kPairLanes;
        uint32_t word = 0;
        uint32_t place = 0;
#pragma unroll
        for (int w = kWords - 1; w >= 0; --w) {
            word = words[w] != 0 ? words[w] : word;
            place = words[w] != 0 ? uint32_t(w) : place;
        }
        const unsigned shift =
                threadIdx.x % kWarpSize / kPairLanes * kPairLanes;
        const unsigned lanes =
                __ballot_sync(kFullWarp, word != 0) >> shift & 0xffu;
        const uint32_t from = lanes ? __ffs(int(lanes)) - 1 : 0;
        const uint32_t mine = (place * kPairLanes + lane) * 32 +
                uint32_t(__ffs(int(word)) - 1);
        bit = __shfl_sync(kFullWarp, mine, int(from), kPairLanes);
        if (lane == from) {
            word &= word - 1;
#pragma unroll
            for (int w = 0; w < kWords; ++w) {
                words[w] = uint32_t(w) == place ? word : words[w];
            }
        }
        return lanes != 0;
    }

    /// Puts an entry, the same of all lanes of a row, among the nearest.
    __device__ __forceinline__ static void insert(
            uint64_t entry,
            uint64_t& best) {
        if (kFirst) {
            best = min(best, entry);
            return;
        }
        const uint64_t before = __shfl_up_sync(kFullWarp, best, 1, kPairLanes);
        const bool isFirst = threadIdx.x % kPairLanes == 0;
        if (entry < best) {
            best = isFirst || before < entry ? entry : before;
        }
    }
};

template <int kSteps, int kWords, bool kFirst>
__global__ __launch_bounds__(kThreads) void scoreFewKernel(
        const __grid_constant__ ScoreSlotsParams params) {
    __shared__ unsigned scored;
    if (threadIdx.x == 0) {
        scored = 0;
    }
    __syncthreads();
    allowNext();
    waitForPrevious();
    const uint32_t row =
            (blockIdx.x * kThreads + threadIdx.x) / uint32_t(kPairLanes);
    ScoreFew<kSteps, kWords, kFirst> few{params, {}};
    const uint32_t count = few.run(row);
    const CertifiedParams& search = params.passed.search;
    if (!search.numRescored) {
        return;
    }
    if (count > 0) {
        atomicAdd(&scored, count);
    }
    __syncthreads();
    if (threadIdx.x == 0 && scored > 0) {
        atomicAdd(search.numRescored, (unsigned long long)scored);
    }
}

template <int kSteps, int kWords>
void launch(const ScoreSlotsParams& params, cudaStream_t stream) {
    constexpr uint32_t kRows = kThreads / kPairLanes;
    const CertifiedParams& search = params.passed.search;
    const auto kernel = search.k == 1 ? scoreFewKernel<kSteps, kWords, true>
                                      : scoreFewKernel<kSteps, kWords, false>;
    // Vectors are read from there.
    constexpr size_t kShared = 8 * 1024; // what up to eight blocks are charged
    constexpr uint32_t kMany = 32768;
    preferL1(
            reinterpret_cast<const void*>(kernel),
            search.rows >= kMany ? kShared : kAnySharedMemory);
    launchAfterPrevious(
            kernel,
            (search.rows + kRows - 1) / kRows,
            kThreads,
            0,
            stream,
            params);
}

template <int kSteps>
void launchByWords(const ScoreSlotsParams& params, cudaStream_t stream) {
    constexpr int kMost = kMostFewWords / kPairLanes;
    if (params.words.perRow <= 4 * kPairLanes) {
        return launch<kSteps, 4>(params, stream);
    }
    launch<kSteps, kMost>(params, stream);
}

} // namespace

bool canScoreFew(Metric metric, const ScoreSlotsParams& params) {
    const CertifiedParams& search = params.passed.search;
    return metric == Metric::L2 && params.words.bits && search.k >= 1 &&
            search.k <= kMostFewK && params.words.perRow <= kMostFewWords &&
            slotSteps(search.d) >= 2;
}

bool scoreFewPays(const ScoreSlotsParams& params) {
    constexpr int kFew = 2;
    constexpr uint32_t kLeastRows = 8192;
    const CertifiedParams& search = params.passed.search;
    return search.k <= kFew || search.rows >= kLeastRows;
}

void launchScoreFew(
        Metric metric,
        const ScoreSlotsParams& params,
        cudaStream_t stream) {
    const CertifiedParams& search = params.passed.search;
    BITS_THROW_IF_NOT_FMT(
            canScoreFew(metric, params),
            "no kernel for metric = %d, k = %d, words = %u, d = %d",
            int(metric),
            int(search.k),
            params.words.perRow,
            search.d);
    if (slotSteps(search.d) == 2) {
        return launchByWords<2>(params, stream);
    }
    launchByWords<4>(params, stream);
}

} // namespace faiss_bits
