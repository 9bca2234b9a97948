/// The keys of all vectors of a query's lists, of product codes in rows, for
/// queries that seldom meet in a list: the codebook lies in shared memory,
/// copied while the lists are found.
///
/// Four lanes have a vector, two slots of its sum each, and two vectors at a
/// time, so that a component of the query and of the centroid is read once for
/// sixteen vectors. Looked up where it lies, the codebook would come from
/// memory in as many waits as a vector has steps, and 32 rows of it take the
/// first-level cache 32 turns, shared memory six.
///
/// Bound by: of few vectors the wait for codes; of many float64, 14 cycles of
/// a multiprocessor for a vector of 128 dimensions, and look-ups, 12.
#pragma once

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/CodeWords.cuh"
#include "kernels/ivf/IvfBoundedScans.h"
#include "kernels/ivf/IvfDirectLists.cuh"
#include "kernels/ivf/IvfDirectSums.cuh"
#include "kernels/ivf/IvfGroupWords.cuh"

namespace faiss_bits {

/// kPartDims: components of a part, 2, 4, 8 or 16.
template <Metric kMetric, int kPartDims>
struct IvfBookScan {
    using Lists = IvfDirectListsBy<kIvfBookThreads>;
    using Terms = canonical::Terms<kMetric>;
    static constexpr int kThreads = kIvfBookThreads;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr int kSlots = canonical::kSlots;
    static constexpr int kLanes = kSlots / 2; // of a vector
    static constexpr int kVectors = 2;        // of a lane at a time
    static constexpr int kTurns = kLanes / kVectors;
    static_assert(kWarpSize / kLanes * kVectors * kTurns == kListGroup);
    /// Twos of components of a lane that are added up at a time.
    static constexpr int kAhead = 16;
    static constexpr int kStep = kAhead * kSlots;
    static constexpr int kWords = kStep / kPartDims / 4; // codes of a step

    const Lists::Tables& lists;
    const IvfDirectParams& params;
    const float* book;   // [parts, 256, kPartDims], in shared memory
    const double* query; // likewise
    uint32_t row;

    /// Of 32s of columns of the row the part of block blockIdx.x.
    __device__ __forceinline__ void run() const {
        const uint64_t total = lists.first[params.search.nprobe];
        fillIvfRow(
                params,
                row,
                uint32_t(total) * kListGroup,
                blockIdx.x,
                gridDim.x);
        const uint32_t begin = uint32_t(total * blockIdx.x / gridDim.x);
        const uint32_t end = uint32_t(total * (blockIdx.x + 1) / gridDim.x);
        uint32_t at = begin + threadIdx.x / kWarpSize;
        uint32_t probe = 0;
        uint32_t next = 0; // probe of the group after
        const auto ask = [&](uint32_t group) {
            if (group < end) {
                while (group >= lists.first[next + 1]) {
                    ++next;
                }
                prefetch(group, next);
            }
        };
        ask(at);
        for (; at < end; at += kWarps) {
            probe = next;
            ask(at + kWarps);
            runGroup(at, probe);
        }
    }

   private:
    /// Codes of a step, of the vectors of a lane.
    using Codes = uint32_t[kVectors][kWords];

    /// Asks for the codes of 32 columns, which come in two turns.
    __device__ __forceinline__ void prefetch(uint32_t at, uint32_t probe)
            const {
        constexpr uint32_t kLine = 128;
        const uint32_t parts = uint32_t(params.search.d) / kPartDims;
        const uint32_t first = (at - lists.first[probe]) * kListGroup;
        const uint32_t there = min(lists.lengths[probe] - first, kListGroup);
        const auto* from = static_cast<const uint8_t*>(lists.vectors[probe]) +
                int64_t(first) * parts;
        for (uint32_t byte = threadIdx.x % kWarpSize * kLine;
             byte < there * parts;
             byte += kWarpSize * kLine) {
            prefetchToL2(from + byte);
        }
    }

    /// 32 columns, of a probe.
    __device__ __forceinline__ void runGroup(uint32_t at, uint32_t probe)
            const {
        const IvfParams& search = params.search;
        const uint32_t lane = threadIdx.x % kWarpSize;
        const uint32_t group = at - lists.first[probe];
        const uint32_t length = lists.lengths[probe];
        const uint32_t list = lists.numbers[probe];
        const auto* codes = static_cast<const uint8_t*>(lists.vectors[probe]);
        const uint32_t selected =
                IvfGroupWords::ofWarp(search.lists, list, group, length);
        uint32_t key = kNanKey;
        if (selected != 0) { // else nothing is read
            const float* centroid = search.lists.decoding.centroids;
            if (centroid) {
                centroid += int64_t(list) * search.d;
            }
            const uint32_t first = group * kListGroup + lane / kLanes * kLanes;
#pragma unroll 1
            for (int turn = 0; turn < kTurns; ++turn) {
                uint32_t keys[kVectors];
                keysOf(codes,
                       first + turn * kVectors,
                       length - 1,
                       centroid,
                       keys);
#pragma unroll
                for (int v = 0; v < kVectors; ++v) {
                    if (lane % kLanes == uint32_t(turn * kVectors + v)) {
                        key = keys[v];
                    }
                }
            }
        }
        keepIvfKey<kMetric>(
                params,
                row,
                at,
                key,
                group * kListGroup + lane < length && (selected >> lane & 1));
    }

    /// Of vectors `vector` and on, but none behind the last, in all lanes of
    /// these.
    __device__ __forceinline__ void keysOf(
            const uint8_t* codes,
            uint32_t vector,
            uint32_t last,
            const float* centroid,
            uint32_t (&keys)[kVectors]) const {
        const int d = params.search.d;
        const int parts = d / kPartDims;
        const uint8_t* from[kVectors];
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            from[v] = codes + int64_t(min(vector + v, last)) * parts;
        }
        double sums[kVectors][2] = {};
        for (int begin = 0; begin < d; begin += kStep) {
            Codes now;
            const int first = begin / kPartDims;
#pragma unroll
            for (int v = 0; v < kVectors; ++v) {
                load(from[v] + first, parts - first, now[v]);
            }
            begin + kStep <= d ? add<true>(now, begin, centroid, sums)
                               : add<false>(now, begin, centroid, sums);
        }
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            // Slots 0 and 4, 2 and 6, then both; likewise the odd ones.
            double joined[2];
#pragma unroll
            for (int s = 0; s < 2; ++s) {
                joined[s] = sums[v][s];
#pragma unroll
                for (int lanes = kLanes / 2; lanes >= 1; lanes /= 2) {
                    joined[s] = Terms::join(
                            joined[s],
                            __shfl_xor_sync(kFullWarp, joined[s], lanes));
                }
            }
            const double sum[1] = {Terms::join(joined[0], joined[1])};
            keys[v] = entryKey(distanceEntry<kMetric>(Terms::finish(sum), 0));
        }
    }

    /// Codes `from` on, of which `left` are there.
    __device__ __forceinline__ static void load(
            const uint8_t* from,
            int left,
            uint32_t (&words)[kWords]) {
        if constexpr (kWords % 4 == 0) {
            // The same of all vectors of a list.
            if (left % 16 == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
#pragma unroll
                for (int w = 0; w < kWords; w += 4) {
                    uint32_t some[4] = {};
                    if (4 * w < left) {
                        loadCodeWords<16>(from + 4 * w, some);
                    }
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        words[w + i] = some[i];
                    }
                }
                return;
            }
        }
#pragma unroll
        for (int w = 0; w < kWords; ++w) {
            words[w] = 0;
#pragma unroll
            for (int b = 0; b < 4; ++b) {
                if (4 * w + b < left) {
                    words[w] |= uint32_t(from[4 * w + b]) << 8 * b;
                }
            }
        }
    }

    /// Adds the components of a step; kWhole: none is behind the last, so that
    /// no look-up waits for a branch.
    template <bool kWhole>
    __device__ __forceinline__ void add(
            const Codes& codes,
            int begin,
            const float* centroid,
            double (&sums)[kVectors][2]) const {
        const int d = params.search.d;
        const int mine = int(threadIdx.x % kLanes) * 2;
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            const int c = begin + i * kSlots + mine;
            if (!kWhole && begin + i * kSlots >= d) {
                break;
            }
            // Without one zeros are added, which makes 0 of -0 and no other
            // sum.
            float2 center = {0, 0};
            if (centroid) {
                center = __ldg(reinterpret_cast<const float2*>(centroid + c));
            }
            const double2 q = *reinterpret_cast<const double2*>(query + c);
            const int part = (i * kSlots + mine) / kPartDims; // of the step
            const float* rows = book +
                    (begin / kPartDims + part) * kIvfCodebookRows * kPartDims +
                    mine % kPartDims + i * kSlots % kPartDims;
#pragma unroll
            for (int v = 0; v < kVectors; ++v) {
                // The word is the same of all lanes.
                constexpr int kOfWord = 4 * kPartDims; // components
                const uint32_t word = codes[v][i * kSlots / kOfWord];
                const uint32_t code = word >> part % 4 * 8 & 0xff;
                const float2 y = *reinterpret_cast<const float2*>(
                        rows + code * kPartDims);
                addTerm(__fadd_rn(y.x, center.x), q.x, sums[v][0]);
                addTerm(__fadd_rn(y.y, center.y), q.y, sums[v][1]);
            }
        }
    }

    __device__ __forceinline__ void addTerm(float x, double q, double& sum)
            const {
        double one[] = {sum};
        Terms::add(one, double(x), q, params.search.power);
        sum = one[0];
    }
};

/// The codebook to shared memory, by a block.
__device__ __forceinline__ void beginBookCopy(
        const IvfParams& search,
        float* book) {
    constexpr int kChunk = 16; // bytes
    const auto* from =
            reinterpret_cast<const uint8_t*>(search.lists.decoding.codebook);
    const uint32_t to = sharedAddress(book);
    const int chunks =
            search.d * kIvfCodebookRows * int(sizeof(float)) / kChunk;
#pragma unroll 4
    for (int i = int(threadIdx.x); i < chunks; i += kIvfBookThreads) {
        copyAsync(to + i * kChunk, from + i * kChunk);
    }
}

/// Blocks of a query (x) and queries (y).
template <Metric kMetric, int kPartDims>
__global__ __launch_bounds__(kIvfBookThreads, 1) void ivfBookScanKernel(
        const __grid_constant__ IvfDirectParams params) {
    using Scan = IvfBookScan<kMetric, kPartDims>;
    using Lists = typename Scan::Lists;
    extern __shared__ __align__(16) uint8_t ivfBookMemory[];
    const IvfParams& search = params.search;
    auto* query = reinterpret_cast<double*>(ivfBookMemory);
    auto* book = reinterpret_cast<float*>(query + search.d);
    auto& storage = *reinterpret_cast<typename Lists::SharedStorage*>(
            book + search.d * kIvfCodebookRows);
    const typename Lists::Tables lists(&storage + 1, search.nprobe);
    // What was there before the kernel of the centroids can be read while that
    // runs.
    if (!params.centroids) {
        waitForPrevious();
    }
    allowNext();
    const uint32_t row = blockIdx.y;
    const IvfQueryAhead<kIvfBookThreads> ahead(search, row);
    beginBookCopy(search, book);
    if (params.centroids) {
        Lists::prefetch(
                search.lists,
                blockIdx.y * gridDim.x + blockIdx.x,
                gridDim.x * gridDim.y);
        waitForPrevious();
    }
    ahead.write(query, search.d);
    Lists{storage, lists, params, row}.find();
    waitForAllCopies();
    __syncthreads();
    Scan{lists, params, book, query, row}.run();
}

} // namespace faiss_bits
