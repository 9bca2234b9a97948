/// The two nearest vectors of every strip, and the next value, found where the
/// products are.
#pragma once

#include "kernels/knn/fused/tensor/LimitTest.cuh"
#include "kernels/knn/fused/tensor/NearestTiles.h"

namespace faiss_bits {

/// Has the interface of LimitTest, and its fragments. A strip is what one lane
/// meets of a row's vectors in an item of work, or with kOfTiles in a tile
/// (NearestTiles.h).
///
/// The largest of every four values is numbered in its last bits, and then the
/// two largest of a tile are found, and those of the strip: 7 operations of the
/// slower kind for four values, 9 of strips of a tile, which have its third for
/// a rest.
template <
        ScanNorms kNorms,
        int kBlocks,
        int kWidth,
        int kRowStep,
        bool kOfTiles = false>
class NearestTest : public ScanRows<kNorms, kBlocks, kRowStep> {
    using Rows = ScanRows<kNorms, kBlocks, kRowStep>;
    using Rows::factors_;
    using Rows::kInfinite;
    using Rows::vectors_;

   public:
    using Rows::kRows;

    __device__ __forceinline__ void start(
            const TensorScanParams& params,
            uint32_t row) {
        Rows::startRows(params, row);
        if constexpr (kOfTiles) {
            params_ = &params;
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            values_[r][0] = values_[r][1] = -kInfinite;
            rests_[r] = -kInfinite;
            tiles_[r] = 0;
            // As LimitTest has it: exact, or nothing is decided.
            if (kNorms == ScanNorms::InValues &&
                !isNormFactor(Rows::normFactor(r))) {
                rests_[r] = kInfinite;
            }
        }
    }

    __device__ __forceinline__ void run(
            const float (&values)[kBlocks][kWidth / 2],
            const float* norms,
            uint32_t column,
            PassedBuffer&) {
        if (column + kWidth > vectors_) {
            take<true>(values, norms, column);
        } else {
            take<false>(values, norms, column);
        }
    }

    /// Writes the item's strips. part: of the row's strips, in fours.
    __device__ __forceinline__ void finish(
            const TensorScanParams& params,
            uint32_t part) const {
        if constexpr (kOfTiles) {
            return; // each was written
        }
        const uint32_t lane = threadIdx.x % kRowLanes;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const uint32_t i = Rows::rowOf(r);
            if (i >= params.numQueries) {
                continue;
            }
            const float unit = Rows::unitOf(r);
            NearestStrip strip;
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const uint32_t place = __float_as_uint(values_[r][j]) & kPlaces;
                const uint32_t tile =
                        j == 0 ? tiles_[r] & 0xffff : tiles_[r] >> 16;
                strip.values[j] = values_[r][j] * unit;
                strip.columns[j] = tile * kWidth + place * 16 + 2 * lane;
            }
            const size_t at =
                    size_t(i) * params.nearest.perRow + part * kRowLanes + lane;
            params.nearest.strips[at] = strip;
            params.nearest.rests[at] = rests_[r] * unit;
        }
    }

   private:
    static constexpr uint32_t kPlaces = kWidth / 16 - 1; // fours in a tile
    static_assert((kPlaces & (kPlaces + 1)) == 0 && kPlaces < 16);
    static constexpr float kMost = 3.402823466e+38f;

    template <bool kCut>
    __device__ __forceinline__ void take(
            const float (&values)[kBlocks][kWidth / 2],
            const float* norms,
            uint32_t column) {
        const int lane = threadIdx.x % kRowLanes;
        // Of which the compiler does not know the value: a mask and a number
        // that are both constants would be two instructions.
        uint32_t mask = ~kPlaces;
        asm("" : "+r"(mask));
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            float most = -kInfinite;
            float second = -kInfinite;
            float third = -kInfinite; // of tiles
            // NaN if a value, for L2 the greatest of a four, is NaN or
            // infinite.
            float zeros = 0.0f;
#pragma unroll
            for (int group = 0; group < kWidth / 16; ++group) {
                float greatest = -kInfinite;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int j = 2 * group + i / 2;
                    const int at = 8 * j + 2 * lane + i % 2;
                    float v = values[r / 2][4 * j + 2 * (r % 2) + i % 2];
                    if (kNorms == ScanNorms::ToBeAdded) {
                        v = fmaf(2.0f * factors_[r], v, -norms[at]);
                    }
                    if (kNorms == ScanNorms::None) {
                        zeros = fmaf(v, 0.0f, zeros);
                    }
                    // A finite number, so that numbering leaves it one.
                    if (kCut && column + at >= vectors_) {
                        v = -kMost;
                    }
                    greatest = i == 0 ? v : fmaxf(greatest, v);
                }
                greatest = __uint_as_float(
                        (__float_as_uint(greatest) & mask) | uint32_t(group));
                // Infinity and a number are NaN: the others of the four would
                // be forgotten.
                if (kNorms != ScanNorms::None) {
                    zeros = fmaf(greatest, 0.0f, zeros);
                }
                if constexpr (kOfTiles) {
                    third = fmaxf(third, fminf(second, greatest));
                }
                second = fmaxf(second, fminf(most, greatest));
                most = fmaxf(most, greatest);
            }
            if constexpr (kOfTiles) {
                const bool isUnknown = zeros != 0.0f || rests_[r] > 0;
                write(r, most, second, isUnknown ? kInfinite : third, column);
                continue;
            }
            keep(r, most, second, column / kWidth);
            if (zeros != 0.0f) {
                rests_[r] = kInfinite;
            }
        }
    }

    /// A strip of one tile.
    __device__ __forceinline__ void write(
            int r,
            float most,
            float second,
            float rest,
            uint32_t column) const {
        const uint32_t i = Rows::rowOf(r);
        if (i >= params_->numQueries) {
            return;
        }
        const float unit = Rows::unitOf(r);
        const uint32_t tile = column / kWidth;
        const uint32_t strip = tile * kRowLanes + threadIdx.x % kRowLanes;
        const auto fourOf = [&](float value) {
            return nearestFourOf(
                    kWidth, strip, __float_as_uint(value) & kPlaces);
        };
        const size_t at = size_t(i) * params_->nearest.perRow + strip;
        params_->nearest.strips[at] = {
                {most * unit, second * unit}, {fourOf(most), fourOf(second)}};
        params_->nearest.rests[at] = rest * unit;
    }

    __device__ __forceinline__ void keep(
            int r,
            float most,
            float second,
            uint32_t tile) {
        const bool first = most > values_[r][0];
        const float next = fminf(values_[r][0], most);
        const bool isNext = next > values_[r][1];
        rests_[r] = fmaxf(rests_[r], second);
        rests_[r] = fmaxf(rests_[r], fminf(values_[r][1], next));
        values_[r][0] = fmaxf(values_[r][0], most);
        values_[r][1] = fmaxf(values_[r][1], next);
        const uint32_t moved = tiles_[r] << 16 | tile;
        const uint32_t replaced = (tiles_[r] & 0xffff) | tile << 16;
        tiles_[r] = first ? moved : isNext ? replaced : tiles_[r];
    }

    const TensorScanParams* params_; // of tiles alone
    float values_[kRows][2];
    float rests_[kRows];
    uint32_t tiles_[kRows]; // of the two, 16 bits each
};

/// A scan that finds the nearest of every strip.
struct FindNearest {
    using Buffer = PassedBuffer; // stays empty
    template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
    using Test = NearestTest<kNorms, kBlocks, kWidth, kRowStep>;
};

/// The same of every strip of a tile.
struct FindNearestOfTiles {
    using Buffer = PassedBuffer; // stays empty
    template <ScanNorms kNorms, int kBlocks, int kWidth, int kRowStep>
    using Test = NearestTest<kNorms, kBlocks, kWidth, kRowStep, true>;
};

} // namespace faiss_bits
