/// Tiles of 64 queries that probe a list, less its center and in float16, in
/// shared memory: the next one is on its way while one is used.
///
/// A thread copies and converts the same parts of a row: no other thread reads
/// what it has copied.
#pragma once

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/device/MmaFloat16.cuh"
#include "kernels/ivf/IvfEstimateShape.h"
#include "kernels/ivf/IvfEstimateTerms.cuh"
#include "kernels/ivf/IvfTileOrder.cuh"

namespace faiss_bits {

/// kAppend: products are compared with limits; else bounds are written.
template <Metric kMetric, class Shape, bool kAppend>
struct IvfQueryTiles {
    static constexpr int kQueries = Shape::kQueries;
    static constexpr int kDepth = Shape::kDepth;
    static constexpr int kRowThreads = Shape::kThreads / kQueries;
    static_assert(kRowThreads == 4);
    static constexpr int kParts = kDepth / (4 * kRowThreads); // of a thread
    static constexpr int kRowBytes = 2 * kDepth;

    /// Of the queries of a tile. A product, with both scales, passes if it is
    /// not below testFactors V + tests; V is the vector's term.
    struct Facts {
        alignas(16) float tests[kQueries][2]; // factor, and the rest
        float terms[kQueries];
        float factors[kQueries];
        float inverses[kQueries]; // of scales
        float slacks[kQueries];   // slackOfQuery()
        uint32_t rows[kQueries];
        float* out[kQueries]; // of bounds: that of the list's first vector
    };

    struct SharedStorage {
        alignas(128) uint8_t halves[2][kQueries][kRowBytes];
        alignas(16) float4 copies[kParts][Shape::kThreads];
        Facts facts[2];
    };

    SharedStorage& shared;
    const IvfParams& params;
    const float* from = nullptr; // of the tile that is on its way
    float limit = 0;
    float* out = nullptr;
    uint32_t row = 0;
    uint32_t nextRow = 0;
    bool isThere = false;
    float scale = 1; // of the tile that is converted

    /// Looks up what begin() will copy: some time before it.
    __device__ __forceinline__ void look(const IvfWork& work, int tile) {
        const uint32_t q = uint32_t(tile) * kQueries + threadIdx.x / 4;
        nextRow = work.place.rows[min(q, work.place.numRows - 1)];
    }

    /// Begins to copy the tile that was looked up.
    __device__ __forceinline__ void begin(const IvfWork& work, int tile) {
        const uint32_t q = uint32_t(tile) * kQueries + threadIdx.x / 4;
        isThere = q < work.place.numRows;
        row = nextRow;
        from = params.queries + int64_t(row) * params.d + threadIdx.x % 4 * 4;
        if constexpr (kAppend) {
            // NaN: none.
            const int64_t last = int64_t(row + 1) * params.k - 1;
            limit = params.nearestPlaces[last] < 0 ? float(NAN)
                                                   : params.nearest[last];
        } else if (isThere) {
            out = params.distances + int64_t(row) * params.stride +
                    work.columns[q] / params.boundVectors;
        }
        copy(0);
    }

    /// Begins to copy the components from `begin` on.
    __device__ __forceinline__ void copy(int begin) {
        const uint32_t to = sharedAddress(&shared.copies[0][threadIdx.x]);
        constexpr uint32_t kStep = sizeof(shared.copies[0]);
        const float* part = from + begin;
        const int left = isThere ? params.d - componentOf(begin, 0) : 0;
        if (params.wholeParts && begin + kDepth <= params.d) {
#pragma unroll
            for (int i = 0; i < kParts; ++i) {
                copyBytes<16>(to + i * kStep, part + 16 * i, isThere);
            }
        } else if (params.wholeParts) {
#pragma unroll
            for (int i = 0; i < kParts; ++i) {
                copyBytes<16>(to + i * kStep, part + 16 * i, 16 * i < left);
            }
        } else {
#pragma unroll 1
            for (int i = 0; i < 4 * kParts; ++i) {
                const int c = i / 4 * 16 + i % 4;
                copyBytes<4>(
                        to + i / 4 * kStep + i % 4 * 4, part + c, c < left);
            }
        }
        endCopies();
    }

    /// Converts what was begun, of a tile with numRows; `begin` is its first
    /// component. All threads call it; behind a barrier it is in `slot`, and
    /// its facts in factsSlot. What is behind the last row may be anything.
    template <class Tables>
    __device__ __forceinline__ void convert(
            int slot,
            int factsSlot,
            int begin,
            int numRows,
            const Tables& tables) {
        waitForCopies<0>();
        constexpr int kWarpRows = kWarpSize / kRowThreads;
        if (int(threadIdx.x) / kWarpSize * kWarpRows >= numRows) {
            return; // none of this warp's rows is there
        }
        if (Shape::kIsWhole || begin == 0) {
            ivf_estimate::QuerySums sums;
            if constexpr (Shape::kIsWhole) {
#pragma unroll
                for (int i = 0; i < kParts; ++i) {
                    const float4 q = shared.copies[i][threadIdx.x];
                    const float4 center = tables.centers(componentOf(0, i));
                    const auto add = [&](float value, float of) {
                        addTo(sums, less(value, of), value, of);
                    };
                    add(q.x, center.x);
                    add(q.y, center.y);
                    add(q.z, center.z);
                    add(q.w, center.w);
                }
            } else {
                sumUp(sums, tables);
            }
            finish(factsSlot, sums);
        }
        // Read once more: registers are full of vectors.
        asm volatile("" ::: "memory");
        const int row = threadIdx.x / 4;
        const int part = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            const float4 q = shared.copies[i][threadIdx.x];
            const float4 center = kMetric == Metric::L2
                    ? tables.centers(componentOf(begin, i))
                    : float4{};
            // The first two are of one product of eight components, the others
            // of the next one: so vectors are read (IvfVectorFragments.cuh).
            const auto store = [&](int piece, float one, float two) {
                *reinterpret_cast<uint32_t*>(
                        &shared.halves[slot][row]
                                      [pieceOf(row, 2 * i + piece) +
                                       part * 4]) =
                        toFloat16(one * scale, two * scale);
            };
            store(0, less(q.x, center.x), less(q.y, center.y));
            store(1, less(q.z, center.z), less(q.w, center.w));
        }
    }

    /// Step `step` of the tile of `slot`, of queries `first` to first + 15: for
    /// two products of eight queries.
    __device__ __forceinline__ void load(
            uint32_t (&b)[4],
            int slot,
            int first,
            int step) const {
        const int lane = threadIdx.x % kWarpSize;
        const int q = first + lane / 16 * 8 + lane % 8;
        loadFragments(
                b,
                sharedAddress(&shared.halves[slot][q][pieceOf(
                        q, 2 * step + lane / 8 % 2)]));
    }

   private:
    /// The first one of a thread's part.
    __device__ __forceinline__ static int componentOf(int begin, int i) {
        return begin + 16 * i + int(threadIdx.x) % 4 * 4;
    }

    /// Where a piece of sixteen bytes of a row is: such that lanes of a product
    /// meet no bank twice.
    __device__ __forceinline__ static int pieceOf(int q, int piece) {
        constexpr int kRows = kRowBytes < 128 ? 128 / kRowBytes : 1;
        return (piece ^ q / kRows % (8 / kRows)) * 16;
    }

    __device__ __forceinline__ static float less(float value, float center) {
        return kMetric == Metric::L2 ? value - center : value;
    }

    __device__ __forceinline__ static void addTo(
            ivf_estimate::QuerySums& sums,
            float s,
            float q,
            float center) {
        sums.squares = __fmaf_rn(s, s, sums.squares);
        if constexpr (kMetric != Metric::L2) {
            const float product = center * q;
            sums.center += product;
            sums.centerSize += fabsf(product);
        }
    }

    /// Sums over a whole row, of a tile that comes in parts.
    template <class Tables>
    __device__ __forceinline__ void sumUp(
            ivf_estimate::QuerySums& sums,
            const Tables& tables) const {
        const float* q = from - threadIdx.x % 4 * 4;
#pragma unroll 4
        for (int c = threadIdx.x % 4; c < params.d; c += 4) {
            const float value = isThere ? q[c] : 0.0f;
            const float center = tables.center(c);
            addTo(sums, less(value, center), value, center);
        }
    }

    __device__ __forceinline__ void finish(
            int slot,
            ivf_estimate::QuerySums sums) {
#pragma unroll
        for (int distance = 1; distance < 4; distance *= 2) {
            const auto add = [&](float& sum) {
                sum += __shfl_xor_sync(kFullWarp, sum, distance);
            };
            add(sums.squares);
            if constexpr (kMetric != Metric::L2) {
                add(sums.center);
                add(sums.centerSize);
            }
        }
        scale = ivf_estimate::scaleOf(sums.squares);
        if (threadIdx.x % 4 != 0) {
            return;
        }
        Facts& facts = shared.facts[slot];
        const int q = threadIdx.x / 4;
        float factor = 0;
        const float term = ivf_estimate::ofQuery(
                kMetric, params.bound, sums, isLower(), factor);
        facts.terms[q] = term;
        facts.factors[q] = factor;
        facts.inverses[q] = ivf_estimate::inverseOf(scale);
        facts.slacks[q] =
                ivf_estimate::slackOfQuery(kMetric, params.bound, sums);
        facts.rows[q] = row;
        if constexpr (kAppend) {
            const float half = kMetric == Metric::L2 ? 0.5f * scale : scale;
            facts.tests[q][0] = kMetric == Metric::L2 ? half : half * factor;
            facts.tests[q][1] = half * (term - limit);
        } else {
            facts.out[q] = isThere ? out : nullptr;
        }
    }

    __device__ __forceinline__ bool isLower() const {
        return kAppend || params.isLower;
    }

    template <int kBytes>
    __device__ __forceinline__ static void copyBytes(
            uint32_t to,
            const float* from,
            bool isRead) {
        // What is not read is filled with zeros.
        const int bytes = isRead ? kBytes : 0;
        if constexpr (kBytes == 16) {
            copyAsync(to, from, bytes);
        } else {
            copyAsyncByL1<4>(to, from, bytes);
        }
    }
};

} // namespace faiss_bits
