/// Images of queries, eight rows of a warp together: what TensorImageKernel.cuh
/// writes, by the same arithmetic, but for the order of sums. To shared memory
/// by the kernel that multiplies them, or to memory (QueryImage.cu).
#pragma once

#include "kernels/knn/fused/tensor/TensorImageKernel.cuh"

namespace faiss_bits::at_once {

/// Queries, and what is written of them beside their images.
struct QueryPieces {
    const float* rows; // [n, d]
    uint32_t n;
    int d;
    bool aligned;        // pieces of rows can be read 16 bytes at a time
    const float* center; // or nullptr
    const TensorImageFacts* vectorFacts;
    float* outNorms;
    float* outResiduals;

    /// Asks L2 for some rows. One lane does.
    __device__ __forceinline__ void prefetch(uint32_t first, uint32_t count)
            const {
        if (!aligned || first >= n || threadIdx.x % kWarpSize != 0) {
            return;
        }
        const float* from = rows + size_t(first) * d;
        const uint32_t bytes = min(count, n - first) * d * sizeof(float);
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                             __cvta_generic_to_global(from)),
                     "r"(bytes)
                     : "memory");
    }
};

struct QueryFacts {
    float norm; // less the center, squared
    float residual;
    float inverse; // 1 / scale
};

/// A warp makes rows of 64 components a slab, kTogether at a time. kOfScans: of
/// a TensorImage, whose scales are such that products with those of the
/// vectors' norms are normal numbers.
template <int kSlabs, bool kOfScans = false>
class QueryRows {
    static constexpr int kPiece = 4;                 // components of a lane
    static constexpr int kLanes = 16 * kSlabs;       // of a row
    static constexpr int kSide = kWarpSize / kLanes; // rows side by side
    static constexpr int kSlabRows =
            kOfScans ? TensorImageLayout::kTileRows : 64;

   public:
    static constexpr uint32_t kTogether = 8;
    static constexpr int kSteps = kTogether / kSide;
    using Pieces = float[kSteps][kPiece];

    /// What lanes know of rows: each of its own, of all that the warp makes of
    /// a tile.
    struct Sums {
        float norm = 0;
        float squares = 0; // of what the image lost
        int exponent = 0;  // of the scale
        bool finite = true;
    };

    __device__ __forceinline__ explicit QueryRows(const QueryPieces& queries)
            : queries_(queries) {
#pragma unroll
        for (int c = 0; c < kPiece; ++c) {
            const int at = component() + c;
            center_[c] =
                    queries.center && at < queries.d ? queries.center[at] : 0;
        }
        if (kOfScans && queries.vectorFacts) {
            const int norms = ilogbf(queries.vectorFacts->normInverse) +
                    ilogbf(queries.vectorFacts->scale);
            leastExponent_ = max(leastExponent_, -23 - norms);
            mostExponent_ = min(mostExponent_, 16 - norms);
        }
    }

    /// The queries from one on.
    __device__ __forceinline__ void read(uint32_t first, Pieces& x) const {
        if (queries_.aligned && first + kTogether <= queries_.n) {
            const bool isIn = component() < queries_.d;
            const float* from = queries_.rows +
                    size_t(rowOf(first, 0)) * queries_.d + component();
#pragma unroll
            for (int i = 0; i < kSteps; ++i) {
                const float4 four = isIn
                        ? __ldg(reinterpret_cast<const float4*>(
                                  from + i * kSide * queries_.d))
                        : float4{0, 0, 0, 0};
                x[i][0] = four.x;
                x[i][1] = four.y;
                x[i][2] = four.z;
                x[i][3] = four.w;
            }
            return;
        }
#pragma unroll 1
        for (int i = 0; i < kSteps; ++i) {
            const uint32_t query = rowOf(first, i);
            const float* from = queries_.rows + size_t(query) * queries_.d;
            float four[kPiece];
#pragma unroll
            for (int c = 0; c < kPiece; ++c) {
                const int at = component() + c;
                four[c] = query < queries_.n && at < queries_.d
                        ? __ldg(from + at)
                        : 0.0f;
            }
            // Registers have no numbers.
#pragma unroll
            for (int to = 0; to < kSteps; ++to) {
#pragma unroll
                for (int c = 0; c < kPiece; ++c) {
                    x[to][c] = to == i ? four[c] : x[to][c];
                }
            }
        }
    }

    /// Writes them to an image, from row `first` on, a multiple of kTogether.
    /// turn: how many times the warp did for this image before. Step by step
    /// for all rows, as a row alone is a chain of latencies.
    __device__ __forceinline__ void make(
            uint32_t query,
            uint32_t first,
            int turn,
            Pieces& x,
            uint8_t* image,
            Sums& own) const {
        uint32_t greatest[kSteps];
        float norms[kSteps];
        uint32_t most = 0;
        const bool isWhole = query + kTogether <= queries_.n;
#pragma unroll
        for (int i = 0; i < kSteps; ++i) {
            greatest[i] = 0;
            norms[i] = 0;
#pragma unroll
            for (int c = 0; c < kPiece; ++c) {
                x[i][c] -= center_[c];
                if (!isWhole && rowOf(query, i) >= queries_.n) {
                    x[i][c] = 0;
                }
                greatest[i] = max(greatest[i], sizeOf(x[i][c]));
                norms[i] = fmaf(x[i][c], x[i][c], norms[i]);
            }
            most = max(most, greatest[i]);
        }
        mostOf(greatest);
        addLanes(norms);
        const bool isOwn = lane() % 4 == turn;
        own.norm = isOwn ? norms[0] : own.norm;
        own.finite = isOwn ? ofOwnStep(greatest) < kInfinityBits : own.finite;
        // No infinity, and nothing that float16 has no room for.
        constexpr uint32_t kPlain = (60u + 127) << 23;
        if (__any_sync(kFullWarp, most >= kPlain)) {
            finiteMost(x, greatest);
            convert<false>(x, greatest, first, isOwn, image, own);
        } else {
            convert<true>(x, greatest, first, isOwn, image, own);
        }
    }

    /// write(row, facts) of each row that the warp made; firstOf(turn): as in
    /// its calls of make(), of which there were `turns`.
    template <class FirstOf, class Write>
    __device__ __forceinline__ void writeFacts(
            int turns,
            const Sums& own,
            const FirstOf& firstOf,
            const Write& write) const {
        const int turn = lane() % 4;
        if (turn < turns) {
            write(rowOf(firstOf(turn), lane() / 4), factsOf(own));
        }
    }

   private:
    static_assert(kSteps * 4 == kLanes);

    static __device__ __forceinline__ int lane() { // of a row
        return threadIdx.x % kLanes;
    }

    static __device__ __forceinline__ int component() {
        return lane() * kPiece;
    }

    static __device__ __forceinline__ uint32_t rowOf(uint32_t first, int step) {
        return first + step * kSide + threadIdx.x % kWarpSize / kLanes;
    }

    static __device__ __forceinline__ uint32_t
    ofOwnStep(const uint32_t (&values)[kSteps]) {
        uint32_t result = values[0];
#pragma unroll
        for (int i = 1; i < kSteps; ++i) {
            result = lane() / 4 == i ? values[i] : result;
        }
        return result;
    }

    static __device__ __forceinline__ uint32_t sizeOf(float x) {
        return __float_as_uint(x) & 0x7fffffffu;
    }

    /// Of all lanes of a row.
    static __device__ __forceinline__ void mostOf(uint32_t (&values)[kSteps]) {
        if constexpr (kLanes == kWarpSize) {
#pragma unroll
            for (uint32_t& value : values) {
                value = __reduce_max_sync(kFullWarp, value);
            }
        } else {
#pragma unroll
            for (int lanes = kLanes / 2; lanes >= 1; lanes /= 2) {
#pragma unroll
                for (uint32_t& value : values) {
                    value = max(
                            value, __shfl_xor_sync(kFullWarp, value, lanes));
                }
            }
        }
    }

    /// The sums of all lanes of each row: values[0] becomes that of step
    /// lane() / 4, as half of the lanes pass on what the others keep.
    static __device__ __forceinline__ void addLanes(float (&values)[kSteps]) {
        int lanes = kLanes / 2;
#pragma unroll
        for (int kept = kSteps / 2; kept >= 1; kept /= 2) {
            const bool isUpper = (lane() & lanes) != 0;
#pragma unroll
            for (int i = 0; i < kept; ++i) {
                const float given = isUpper ? values[i] : values[i + kept];
                const float own = isUpper ? values[i + kept] : values[i];
                values[i] = own + __shfl_xor_sync(kFullWarp, given, lanes);
            }
            lanes /= 2;
        }
        values[0] += __shfl_xor_sync(kFullWarp, values[0], 2);
        values[0] += __shfl_xor_sync(kFullWarp, values[0], 1);
    }

    /// The greatest that are finite.
    static __device__ __forceinline__ void finiteMost(
            const Pieces& x,
            uint32_t (&greatest)[kSteps]) {
#pragma unroll
        for (int i = 0; i < kSteps; ++i) {
            greatest[i] = 0;
#pragma unroll
            for (int c = 0; c < kPiece; ++c) {
                greatest[i] = max(greatest[i], finiteSize(x[i][c]));
            }
        }
        mostOf(greatest);
    }

    /// exponentFor(), of the bits of a number that is not below 0.
    __device__ __forceinline__ int exponentOf(uint32_t greatest) const {
        const int exponent = 8 + 127 - int(greatest >> 23);
        if (kOfScans) {
            return min(
                    max(greatest > 0 ? exponent : 0, leastExponent_),
                    mostExponent_);
        }
        return min(max(exponent, -kMostExponent), kMostExponent);
    }

    /// kPlain: all components are finite, and none has to be cut.
    template <bool kPlain>
    __device__ __forceinline__ void convert(
            const Pieces& x,
            const uint32_t (&greatest)[kSteps],
            uint32_t first,
            bool isOwn,
            uint8_t* image,
            Sums& own) const {
        const int piece = lane() / 2; // of 16 bytes
        uint8_t* const to = image + piece / 8 * (kSlabRows * 128) +
                first * 128 + lane() % 2 * 8;
        float squares[kSteps];
#pragma unroll
        for (int i = 0; i < kSteps; ++i) {
            const float scale = powerOfTwo(exponentOf(greatest[i]));
            squares[i] = 0;
            __half2 pairs[2];
#pragma unroll
            for (int p = 0; p < 2; ++p) {
                float scaled[2];
                float held[2];
#pragma unroll
                for (int c = 0; c < 2; ++c) {
                    const float component = x[i][2 * p + c];
                    scaled[c] = component * scale;
                    const bool isCut = !kPlain &&
                            finiteSize(component) == sizeOf(component);
                    held[c] = isCut
                            ? fminf(fmaxf(scaled[c], -65504.0f), 65504.0f)
                            : scaled[c];
                }
                pairs[p] = __floats2half2_rn(held[0], held[1]);
                const float low = scaled[0] - __low2float(pairs[p]);
                const float high = scaled[1] - __high2float(pairs[p]);
                squares[i] = fmaf(low, low, squares[i]);
                squares[i] = fmaf(high, high, squares[i]);
            }
            const int row = rowOf(0, i); // of eight
            *reinterpret_cast<uint2*>(to + row * 128 + (piece % 8 ^ row) * 16) =
                    *reinterpret_cast<const uint2*>(pairs);
        }
        addLanes(squares);
        own.squares = isOwn ? squares[0] : own.squares;
        own.exponent = isOwn ? exponentOf(ofOwnStep(greatest)) : own.exponent;
    }

    __device__ __forceinline__ QueryFacts factsOf(const Sums& sums) const {
        const float inverse = powerOfTwo(-sums.exponent);
        const float rounding = 1.0f + float(queries_.d + 8) * 0x1p-23f;
        const float residual = (sqrtf(sums.squares) * rounding +
                                float(queries_.d) * 0x1p-60f) *
                        inverse * (1.0f + 0x1p-22f) +
                (queries_.center
                         ? sqrtf(sums.norm) * (1.0f + rounding) * 0x1p-24f
                         : 0.0f);
        return {sums.norm,
                sums.finite ? residual : __uint_as_float(kInfinityBits),
                inverse};
    }

    static constexpr int kMostExponent = 60;

    const QueryPieces& queries_;
    float center_[kPiece];
    int leastExponent_ = -kMostExponent; // kOfScans
    int mostExponent_ = kMostExponent;
};

} // namespace faiss_bits::at_once
