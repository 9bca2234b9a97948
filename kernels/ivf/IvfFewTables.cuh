/// What a warp of IvfFewEstimates.cuh has in shared memory: up to 16 or 32
/// queries of a list, less its center and in float16, and what its vectors
/// share.
#pragma once

#include "kernels/device/AsyncCopy.cuh"
#include "kernels/device/MmaFloat16.cuh"
#include "kernels/ivf/IvfEstimateTerms.cuh"
#include "kernels/ivf/IvfFewEstimates.h"
#include "kernels/ivf/IvfTileOrder.cuh"
#include "kernels/ivf/IvfVectorReads.cuh"

namespace faiss_bits {

/// How blocks are made of warps, each with up to kMostQueries of a list.
template <ListCoding kCoding, int kMostQueries>
struct IvfFewShape {
    static constexpr bool kHasCodebook = kCoding == ListCoding::Product;
    static constexpr int kDepth = 128; // components at most
    static constexpr int kSteps = kDepth / 16;
    static constexpr int kThreads = kHasCodebook ? 512 : 256;
    static constexpr int kBlocks = kHasCodebook ? 1 : 2;
    static constexpr int kWarps = kThreads / kWarpSize;
    static constexpr int kQueries = kMostQueries;
    static constexpr int kSliceFloats = 16 * 256; // of a step of codes
    static constexpr int kCodebookFloats =
            kHasCodebook ? kSteps * kSliceFloats : 1;
};

/// What Products take of vectors.
struct IvfFewVectorTerms : IvfVectorReads {
    static constexpr int kSteps =
            IvfFewShape<ListCoding::Float32, kIvfFewQueries>::kSteps;
    float terms[4];
    float inverse;
};

/// Of codes that are looked up in slices, whatever their lists: only whether a
/// list is read so is one by one. By a block, which is in step then.
template <class Vectors, class Shape>
__device__ __forceinline__ void copyCodebookSlices(
        const IvfParams& params,
        float* codebook) {
    const ProductDecoder decoder(params);
    const auto tryDims = [&]<int kDims>() {
        using Blocks = ProductBlocks<Vectors::kLayout, kDims>;
        static_assert(Blocks::kSliceFloats == Shape::kSliceFloats);
        const TilePlace nowhere{0, 0, nullptr, 0};
        if (!Blocks::suits(decoder, params, nowhere)) {
            return false;
        }
        if (threadIdx.x < Blocks::kCodes) {
            const Blocks blocks(decoder, params, nowhere, 0, 0, 0);
            for (int s = 0; s * 16 < params.d; ++s) {
                blocks.copySlice(
                        s * 16, params.d, codebook + s * Shape::kSliceFloats);
            }
        }
        return true;
    };
    if (!tryDims.template operator()<4>()) {
        tryDims.template operator()<2>();
    }
    waitForAllCopies();
    __syncthreads();
}

/// Those of SharedTables, by one warp.
template <class Vectors, int kDepth>
class IvfFewTables {
    static constexpr ListCoding kCoding = Vectors::kCoding;
    enum { kCenters, kCentroids, kStarts, kSteps };
    static constexpr int kTables = kCoding == ListCoding::Float32 ? kCenters + 1
            : isScalar(kCoding)                                   ? kSteps + 1
                                : kCentroids + 1;
    static_assert(kDepth == 4 * kWarpSize);

   public:
    struct Storage {
        alignas(16) float values[kTables][kDepth];
    };

    __device__ __forceinline__ explicit IvfFewTables(Storage& storage)
            : storage_(storage) {}

    /// Behind a barrier of the warp they are there.
    __device__ __forceinline__ void read(
            const ListTables<Vectors>& from) const {
        const int lane = int(threadIdx.x) % kWarpSize;
        // Side by side, so that lanes read the components of a code together.
#pragma unroll
        for (int i = 0; i < kDepth / kWarpSize; ++i) {
            const int c = i * kWarpSize + lane;
            storage_.values[kCenters][c] = from.center(c);
        }
        const int c = 4 * lane;
        if constexpr (kTables > kCentroids) {
            four(kCentroids, c) = from.centroids(c);
        }
        if constexpr (kTables > kSteps) {
            four(kStarts, c) = from.starts(c);
            four(kSteps, c) = from.steps(c);
        }
    }

    __device__ __forceinline__ float4 centers(int c) const {
        return four(kCenters, c);
    }
    __device__ __forceinline__ float4 centroids(int c) const {
        return four(kCentroids, c);
    }
    __device__ __forceinline__ float4 starts(int c) const {
        return four(kStarts, c);
    }
    __device__ __forceinline__ float4 steps(int c) const {
        return four(kSteps, c);
    }

   private:
    __device__ __forceinline__ float4& four(int table, int c) const {
        return *reinterpret_cast<float4*>(&storage_.values[table][c]);
    }

    Storage& storage_;
};

/// The queries. Four lanes have a row, each four components side by side of
/// every sixteen, as vectors have them (IvfVectorReads.cuh).
template <Metric kMetric, class Shape>
struct IvfFewTile {
    static constexpr int kQueries = Shape::kQueries;
    static constexpr int kParts = Shape::kSteps; // of a lane
    static constexpr int kRowBytes = 2 * Shape::kDepth;
    static constexpr int kAtATime = kWarpSize / 4; // rows

    struct Facts {
        float terms[kQueries];
        float factors[kQueries];
        float inverses[kQueries]; // of scales
        float slacks[kQueries];   // slackOfQuery()
        uint32_t rows[kQueries];
        float* out[kQueries]; // of bounds: that of the list's first vector
    };
    struct SharedStorage {
        alignas(128) uint8_t halves[kQueries][kRowBytes];
        Facts facts;
    };

    SharedStorage& shared;
    const IvfParams& params;

    __device__ __forceinline__ const Facts& facts() const {
        return shared.facts;
    }

    /// Looks up the first numRows rows; behind a barrier they are there.
    __device__ __forceinline__ void look(const IvfWork& work, int numRows) {
        const int q = int(threadIdx.x) % kWarpSize;
        if (q < numRows) {
            const uint32_t row = work.place.rows[q];
            shared.facts.rows[q] = row;
            shared.facts.out[q] = params.distances +
                    int64_t(row) * params.stride +
                    work.columns[q] / params.boundVectors;
        }
    }

    /// Behind a barrier they are there. What is behind the last row may be
    /// anything.
    template <class Tables>
    __device__ __forceinline__ void convert(int numRows, const Tables& tables) {
#pragma unroll 1
        for (int first = 0; first < numRows; first += kAtATime) {
            const int q = first + int(threadIdx.x) % kWarpSize / 4;
            float4 parts[kParts];
            read(parts, shared.facts.rows[min(q, numRows - 1)]);
            const float scale = finish(parts, q, q < numRows, tables);
            store(parts, q, scale, tables);
        }
    }

    /// Step `step` of the queries `first` and on, for two products of eight.
    __device__ __forceinline__ void load(uint32_t (&b)[4], int first, int step)
            const {
        const int lane = int(threadIdx.x) % kWarpSize;
        const int q = first + lane / 16 * 8 + lane % 8;
        loadFragments(
                b,
                sharedAddress(&shared.halves[q][pieceOf(
                        q, 2 * step + lane / 8 % 2)]));
    }

    /// The rows have pairs of this width, with vectors of such slack.
    __device__ __forceinline__ void widen(float slack, int numRows) const {
        const int q = int(threadIdx.x) % kWarpSize;
        if (q < numRows) {
            const float width = ivf_estimate::widthOf<kMetric>(
                    slack, shared.facts.slacks[q], shared.facts.factors[q]);
            atomicMax(
                    &params.widths[shared.facts.rows[q]],
                    __float_as_uint(width));
        }
    }

   private:
    __device__ __forceinline__ static int componentOf(int i) {
        return 16 * i + IvfVectorReads::component();
    }

    /// Where a piece of sixteen bytes of a row is: such that lanes of a product
    /// meet no bank twice.
    __device__ __forceinline__ static int pieceOf(int q, int piece) {
        static_assert(kRowBytes >= 128);
        return (piece ^ q % 8) * 16;
    }

    __device__ __forceinline__ static float less(float value, float center) {
        return kMetric == Metric::L2 ? value - center : value;
    }

    __device__ __forceinline__ void read(float4 (&parts)[kParts], uint32_t row)
            const {
        const float* from = params.queries + int64_t(row) * params.d;
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            const int c = componentOf(i);
            if (params.wholeParts) {
                parts[i] = c < params.d
                        ? __ldg(reinterpret_cast<const float4*>(from + c))
                        : float4{0, 0, 0, 0};
            } else {
                const auto at = [&](int j) {
                    return c + j < params.d ? __ldg(from + c + j) : 0.0f;
                };
                parts[i] = {at(0), at(1), at(2), at(3)};
            }
        }
    }

    /// Sums of a row, and what bounds have of it. Returns its scale.
    template <class Tables>
    __device__ __forceinline__ float finish(
            const float4 (&parts)[kParts],
            int q,
            bool isThere,
            const Tables& tables) {
        ivf_estimate::QuerySums sums;
        const auto addOne = [&](float value, float center) {
            const float s = less(value, center);
            sums.squares = __fmaf_rn(s, s, sums.squares);
            if constexpr (kMetric != Metric::L2) {
                const float product = center * value;
                sums.center += product;
                sums.centerSize += fabsf(product);
            }
        };
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            const float4 center = tables.centers(componentOf(i));
            addOne(parts[i].x, center.x);
            addOne(parts[i].y, center.y);
            addOne(parts[i].z, center.z);
            addOne(parts[i].w, center.w);
        }
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
        const float scale = ivf_estimate::scaleOf(sums.squares);
        if (threadIdx.x % 4 == 0 && isThere) {
            Facts& facts = shared.facts;
            float factor = 0;
            facts.terms[q] = ivf_estimate::ofQuery(
                    kMetric, params.bound, sums, params.isLower, factor);
            facts.factors[q] = factor;
            facts.inverses[q] = ivf_estimate::inverseOf(scale);
            facts.slacks[q] =
                    ivf_estimate::slackOfQuery(kMetric, params.bound, sums);
        }
        return scale;
    }

    template <class Tables>
    __device__ __forceinline__ void store(
            const float4 (&parts)[kParts],
            int q,
            float scale,
            const Tables& tables) {
        const int part = int(threadIdx.x) % 4;
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            const float4 center = kMetric == Metric::L2
                    ? tables.centers(componentOf(i))
                    : float4{};
            const float4& value = parts[i];
            const auto storePiece = [&](int piece, float one, float two) {
                *reinterpret_cast<uint32_t*>(
                        &shared.halves[q]
                                      [pieceOf(q, 2 * i + piece) + part * 4]) =
                        toFloat16(one * scale, two * scale);
            };
            storePiece(0, less(value.x, center.x), less(value.y, center.y));
            storePiece(1, less(value.z, center.z), less(value.w, center.w));
        }
    }
};

} // namespace faiss_bits
