/// Products in TF32 of 64 queries that probe a list and 256 of its vectors, and
/// the squares of both.
///
/// Bound by (H200): the instructions around the products, about 16 for each of
/// 16 x 8 x 8 with what becomes of it.
#pragma once

#include <cfloat>

#include "kernels/device/MmaTf32.cuh"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

/// L2: both less a center, which is the list's first vector; inner product: the
/// vectors alone.
template <Metric kMetric, ListLayout kLayout>
struct IvfEstimateTile {
    static constexpr int kThreads = 256;
    static constexpr int kQueries = kIvfTileQueries;
    static constexpr int kVectors = kIvfWideTile;
    static constexpr int kDepth = 16; // components at a time
    static constexpr int kStages = 4;
    static_assert(kThreads == kVectors); // a thread sums squares of a vector
    static constexpr bool kIsGrouped = kLayout == ListLayout::Interleaved;
    // Words from row to row, such that lanes of a product meet no bank twice.
    static constexpr int kQueryPitch = kDepth + 4;
    static constexpr int kVectorPitch = kIsGrouped ? kVectors + 8 : kDepth + 4;
    static constexpr int kVectorRows = kIsGrouped ? kDepth : kVectors;
    // Of a warp: two by eight products of 16 queries by 8 vectors. Of a block:
    // 2 x 4 warps.
    static constexpr int kDown = 2;
    static constexpr int kAcross = 8;
    // Sixteen bytes each: of a row, and of a thread.
    static constexpr int kParts = kDepth / 4;
    static constexpr int kCopies = kVectors * kParts / kThreads;
    static_assert(kQueries * kParts == kThreads); // one of queries

    struct SharedStorage {
        alignas(16) float queries[kStages][kQueries][kQueryPitch];
        alignas(16) float vectors[kStages][kVectorRows][kVectorPitch];
        alignas(16) float center[kStages][kDepth];
        // What is made of the sums of a vector, and of a query.
        float ofVectors[kVectors];
        float ofQueries[kQueries];
        float factors[kQueries];
    };

    /// Sums of a query over its components.
    struct QuerySums {
        float squares = 0;
        float center = 0;     // <c, q>
        float centerSize = 0; // sum of |c_i q_i|
    };

    SharedStorage& shared;
    const IvfParams& params;
    float sums[kDown][kAcross][4];
    // Where this thread copies from: the next components.
    const float* queryFrom;
    const float* vectorFrom;
    const float* centerFrom; // of the first threads
    uint32_t isThere;        // bits of copies; the last one: of the query

    __device__ __forceinline__
    IvfEstimateTile(SharedStorage& storage, const IvfParams& parameters)
            : shared(storage), params(parameters) {}

    /// Begins to copy a tile. No thread reads the stages any more.
    __device__ __forceinline__ void begin(const TilePlace& place) {
        const int numRows = min(int(place.numRows), kQueries);
        const int numVectors =
                int(min(place.last - place.first, int64_t(kVectors)));
        const int q = threadIdx.x / kParts;
        queryFrom = params.queries +
                int64_t(place.rows[min(q, numRows - 1)]) * params.d +
                threadIdx.x % kParts * 4;
        vectorFrom = static_cast<const float*>(place.list) +
                listPlace<kLayout>(
                             place.first + firstVector(),
                             firstComponent(),
                             params.d);
        centerFrom = static_cast<const float*>(place.list) +
                listPlace<kLayout>(0, int(threadIdx.x), params.d);
        isThere = q < numRows ? 1u << kCopies : 0;
#pragma unroll
        for (int i = 0; i < kCopies; ++i) {
            // A group is there as a whole.
            const int v = (kIsGrouped ? firstVector() / kListGroup * kListGroup
                                      : firstVector()) +
                    i * kVectorStep;
            isThere |= v < numVectors ? 1u << i : 0;
        }
#pragma unroll
        for (int stage = 0; stage + 1 < kStages; ++stage) {
            fetch(stage, stage * kDepth);
        }
    }

    /// After begin(). All threads call it; behind it and a barrier the sums are
    /// what bounds.ofVector(rr) and bounds.ofQuery(sums, factor) make of them.
    template <class Bounds>
    __device__ __forceinline__ void multiply(const Bounds& bounds) {
#pragma unroll
        for (int a = 0; a < kDown; ++a) {
#pragma unroll
            for (int b = 0; b < kAcross; ++b) {
#pragma unroll
                for (int r = 0; r < 4; ++r) {
                    sums[a][b][r] = 0;
                }
            }
        }
        float square = 0;
        QuerySums ofQuery;
        const int steps = (params.d + kDepth - 1) / kDepth;
        for (int step = 0; step < steps; ++step) {
            asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2)
                         : "memory");
            // Behind it the stage of the step before is free.
            __syncthreads();
            const int stage = step % kStages;
            fetch((step + kStages - 1) % kStages,
                  (step + kStages - 1) * kDepth);
            square += moveVector(stage);
            moveQuery(stage, ofQuery);
            __syncthreads();
            addStep(stage);
        }
        shared.ofVectors[threadIdx.x] = bounds.ofVector(square);
        storeQuery(bounds, ofQuery);
    }

    /// body(number, vector, product) of this thread's pairs, of four rows of
    /// queries one after another, between before(query) and after(query).
    template <class Before, class Body, class After>
    __device__ __forceinline__ void forRows(
            const Before& before,
            const Body& body,
            const After& after) {
        const int lane = threadIdx.x % kWarpSize;
        const int warp = threadIdx.x / kWarpSize;
#pragma unroll
        for (int a = 0; a < kDown; ++a) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int q = warp % 2 * 32 + a * 16 + h * 8 + lane / 4;
                before(q);
#pragma unroll
                for (int b = 0; b < kAcross; ++b) {
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        const int v = warp / 2 * 64 + b * 8 + lane % 4 * 2 + i;
                        body(b * 2 + i, v, sums[a][b][h * 2 + i]);
                    }
                }
                after(q);
            }
        }
    }

   private:
    // A thread's copies have the same components, of vectors so far apart.
    static constexpr int kGroupParts = kListGroup / 4;
    static constexpr int kVectorStep = kIsGrouped
            ? kThreads / (kGroupParts * kDepth) * kListGroup
            : kThreads / kParts;

    __device__ __forceinline__ static int firstComponent() {
        return kIsGrouped ? int(threadIdx.x) / kGroupParts % kDepth
                          : int(threadIdx.x) % kParts * 4;
    }
    __device__ __forceinline__ static int firstVector() {
        return kIsGrouped
                ? int(threadIdx.x) / (kGroupParts * kDepth) * kListGroup +
                        int(threadIdx.x) % kGroupParts * 4
                : int(threadIdx.x) / kParts;
    }

    /// Four numbers of a row, of which `left` are there; zeros for others.
    __device__ __forceinline__ void copyRow(
            float* to,
            const float* from,
            int left) const {
        const uint32_t address = uint32_t(__cvta_generic_to_shared(to));
        if (params.wholeParts) {
            copyBytes<16>(address, from, left > 0);
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            copyBytes<4>(address + i * 4, from + i, i < left);
        }
    }

    template <int kBytes>
    __device__ __forceinline__ static void copyBytes(
            uint32_t to,
            const float* from,
            bool isRead) {
        // What is not read is filled with zeros.
        const int bytes = isRead ? kBytes : 0;
        if constexpr (kBytes == 16) {
            asm volatile(
                    "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                    "l"(from),
                    "r"(bytes)
                    : "memory");
        } else {
            asm volatile(
                    "cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to),
                    "l"(from),
                    "r"(bytes)
                    : "memory");
        }
    }

    /// The next components, which begin at `depth`; none behind the last.
    __device__ __forceinline__ void fetch(int stage, int depth) {
        if (depth < params.d) {
            const int part = threadIdx.x % kParts * 4;
            float* query = &shared.queries[stage][threadIdx.x / kParts][part];
            const bool isQuery = isThere >> kCopies & 1;
            copyRow(query, queryFrom, isQuery ? params.d - depth - part : 0);
            const int left = params.d - depth - firstComponent();
            const int64_t step = int64_t(kVectorStep) * params.d;
#pragma unroll
            for (int i = 0; i < kCopies; ++i) {
                float* to = kIsGrouped
                        ? &shared.vectors[stage][firstComponent()]
                                         [firstVector() + i * kVectorStep]
                        : &shared.vectors[stage]
                                         [firstVector() + i * kVectorStep]
                                         [firstComponent()];
                const float* from = vectorFrom + i * step;
                const bool isVector = isThere >> i & 1;
                if constexpr (kIsGrouped) {
                    copyBytes<16>(
                            uint32_t(__cvta_generic_to_shared(to)),
                            from,
                            isVector && left > 0);
                } else {
                    copyRow(to, from, isVector ? left : 0);
                }
            }
            if (threadIdx.x < kDepth) {
                copyBytes<4>(
                        uint32_t(__cvta_generic_to_shared(
                                &shared.center[stage][threadIdx.x])),
                        centerFrom,
                        depth + int(threadIdx.x) < params.d);
            }
            centerFrom += kIsGrouped ? kDepth * kListGroup : kDepth;
            queryFrom += kDepth;
            vectorFrom += kIsGrouped ? kDepth * kListGroup : kDepth;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

    /// A component of the center; one that is not finite is no help.
    __device__ __forceinline__ float centerAt(int stage, int c) const {
        const float value = shared.center[stage][c];
        return fabsf(value) <= FLT_MAX ? value : 0.0f;
    }

    /// This thread's vector less the center, rounded; its sum of squares.
    __device__ __forceinline__ float moveVector(int stage) const {
        float sum = 0;
        const auto move = [&](float& x, int c) {
            const float r = x - centerAt(stage, c);
            sum = __fmaf_rn(r, r, sum);
            x = __uint_as_float(toTf32(r));
        };
        if constexpr (kIsGrouped) {
#pragma unroll
            for (int c = 0; c < kDepth; ++c) {
                move(shared.vectors[stage][c][threadIdx.x], c);
            }
        } else {
#pragma unroll
            for (int c = 0; c < kDepth; c += 4) {
                auto* at = reinterpret_cast<float4*>(
                        &shared.vectors[stage][threadIdx.x][c]);
                float4 x = *at;
                move(x.x, c);
                move(x.y, c + 1);
                move(x.z, c + 2);
                move(x.w, c + 3);
                *at = x;
            }
        }
        return sum;
    }

    /// Four components of a query likewise.
    __device__ __forceinline__ void moveQuery(int stage, QuerySums& ofQuery)
            const {
        const int part = threadIdx.x % kParts * 4;
        auto* at = reinterpret_cast<float4*>(
                &shared.queries[stage][threadIdx.x / kParts][part]);
        float4 q = *at;
        const auto move = [&](float& x, int c) {
            const float center = centerAt(stage, c);
            const float s = kMetric == Metric::L2 ? x - center : x;
            ofQuery.squares = __fmaf_rn(s, s, ofQuery.squares);
            if constexpr (kMetric != Metric::L2) {
                const float product = center * x;
                ofQuery.center += product;
                ofQuery.centerSize += fabsf(product);
            }
            x = __uint_as_float(toTf32(s));
        };
        move(q.x, part);
        move(q.y, part + 1);
        move(q.z, part + 2);
        move(q.w, part + 3);
        *at = q;
    }

    template <class Bounds>
    __device__ __forceinline__ void storeQuery(
            const Bounds& bounds,
            QuerySums ofQuery) const {
#pragma unroll
        for (int distance = 1; distance < kParts; distance *= 2) {
            const auto add = [&](float& sum) {
                sum += __shfl_xor_sync(kFullWarp, sum, distance);
            };
            add(ofQuery.squares);
            add(ofQuery.center);
            add(ofQuery.centerSize);
        }
        if (threadIdx.x % kParts == 0) {
            const int q = threadIdx.x / kParts;
            shared.ofQueries[q] = bounds.ofQuery(ofQuery, shared.factors[q]);
        }
    }

    __device__ __forceinline__ uint32_t
    vectorWord(int stage, int v, int c) const {
        return __float_as_uint(
                kIsGrouped ? shared.vectors[stage][c][v]
                           : shared.vectors[stage][v][c]);
    }

    __device__ __forceinline__ void addStep(int stage) {
        const int lane = threadIdx.x % kWarpSize;
        const int warp = threadIdx.x / kWarpSize;
        const int firstQuery = warp % 2 * 32 + lane / 4;
        const int firstVector = warp / 2 * 64 + lane / 4;
#pragma unroll
        for (int k = 0; k < kDepth; k += 8) {
            const int c = k + lane % 4;
            uint32_t q[kDown][4];
#pragma unroll
            for (int a = 0; a < kDown; ++a) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    q[a][i] = __float_as_uint(
                            shared.queries[stage]
                                          [firstQuery + a * 16 + i % 2 * 8]
                                          [c + i / 2 * 4]);
                }
            }
#pragma unroll
            for (int b = 0; b < kAcross; ++b) {
                const int v = firstVector + b * 8;
                const uint32_t x[2] = {
                        vectorWord(stage, v, c), vectorWord(stage, v, c + 4)};
#pragma unroll
                for (int a = 0; a < kDown; ++a) {
                    mmaTf32(sums[a][b], q[a], x);
                }
            }
        }
    }
};

} // namespace faiss_bits
