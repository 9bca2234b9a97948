/// Shapes, parameters and shared memory of the kernel of PassAtOnce.cuh.
#pragma once

#include <cstdint>

#include "kernels/knn/fused/tensor/BulkPipeline.cuh"
#include "kernels/knn/fused/tensor/PassAtOnce.h"
#include "kernels/knn/fused/tensor/QueryPieces.cuh"

namespace faiss_bits::at_once {

constexpr uint32_t kQueries = 64; // of a tile
constexpr int kConsumerGroups = 2;
constexpr int kThreads = 128 * (kConsumerGroups + 1);
constexpr uint32_t kUnit = TensorImageLayout::kTileRows;
constexpr int kSlabBytes = int(kUnit) * 128;
constexpr int kImageSlabBytes = int(kQueries) * 128;
constexpr uint32_t kNoneBelow = 0x7fff7fff; // limit: nothing passes
constexpr uint32_t kAllBelow = 0xffffffff;

/// What the consumers want of a query's row.
struct RowScales {
    float factor;  // -2 s / (scale of q, scale of x)
    float scale;   // s
    float norm;    // |q|^2 s
    float inverse; // 1 / s
};
/// |key - D| <= constant + x (linear + x square) of a vector of length x.
struct RowError {
    float constant;
    float linear;
    float norm;  // |q|, at least
    float image; // |q| and both residuals
};

struct Params {
    QueryPieces queries;
    const uint8_t* vectors;
    const float* norms;
    uint32_t tiles;
    uint32_t rank;
    uint32_t n;
    uint32_t words;
    float cut;      // of tensorScanError: cut / (1 - cut)
    float rounding; // the same
    float* complete;
    uint32_t* bits;
};

/// Slabs that are streamed: two of each group's at a time. A slot more, and one
/// fewer that stays, took 1% longer.
constexpr int kStreamSlots = 4;

/// Words of two strips that a lane has of a row.
constexpr int ownStrips(uint32_t strips) {
    return int(strips) / (2 * 4 * kConsumerGroups);
}

template <int kPerGroup, int kSlabs, int kOwnStrips>
struct Shape {
    static constexpr int kUnits = kConsumerGroups * kPerGroup;
    static constexpr int kAll = kUnits * kSlabs; // slabs
    static constexpr int kRoom = 11; // in shared memory, beside all else
    static constexpr int kSlots = kAll > kRoom ? kStreamSlots : 0;
    static constexpr int kResident = kAll > kRoom ? kRoom - kSlots : kAll;
    static constexpr int kStreamed = kAll - kResident;
    /// A warp copies all the time where vectors are streamed.
    static constexpr int kImageWarps = kStreamed > 0 ? 3 : 4;
    /// Registers of a thread: keys take 32 for each unit of a group. What that
    /// leaves lets images read ahead.
    static constexpr bool kReadsAhead = kPerGroup < 4;
    static constexpr int kImageRegisters = kReadsAhead ? 152 : 88;
    static constexpr int kKeyRegisters = kReadsAhead ? 176 : 208;
    static_assert(
            kImageRegisters + kConsumerGroups * kKeyRegisters <= 65536 / 128);
};

template <int kPerGroup, int kSlabs, int kOwnStrips>
struct Shared {
    using S = Shape<kPerGroup, kSlabs, kOwnStrips>;
    static constexpr int kStripWords = 4 * kOwnStrips;   // of a row and group
    static constexpr int kStripStride = kStripWords + 4; // no bank conflicts

    uint8_t images[2][kSlabs * kImageSlabBytes];
    uint8_t slabs[S::kResident + S::kSlots][kSlabBytes];
    float norms[S::kUnits * kUnit];
    RowScales scales[2][kQueries];
    RowError errors[2][kQueries];
    uint32_t strips[kQueries][kStripStride]; // of the other group's rows
    uint32_t limits[kQueries];
    uint64_t residentFull;
    /// Of each group's streamed slabs, in turn: a barrier is waited for in
    /// each of its phases.
    uint64_t slotFull[kConsumerGroups][3];
    uint64_t slotEmpty[kStreamSlots];
    uint64_t imageFull[2];
    uint64_t imageEmpty[2];
};

/// The place of a slab in the order in which they are consumed: both groups
/// take theirs side by side.
template <int kSlabs>
__device__ __forceinline__ constexpr int placeOf(
        int group,
        int unit,
        int slab) {
    return (unit * kSlabs + slab) * kConsumerGroups + group;
}

/// No less than the root, by the device's approximate one, within 2^-23.
__device__ __forceinline__ float rootAbove(float x) {
    float root;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
    return __fmul_ru(root, 1 + 0x1p-21f);
}

/// What consumers want to know of a query's row. All is rounded up that is to
/// be an upper bound.
__device__ __forceinline__ RowScales
scalesOf(const QueryFacts& facts, const TensorImageFacts& image) {
    const float longest = image.greatestLength;
    const float both = fmaf(longest, longest, facts.norm);
    const int exponent = int(__float_as_uint(both) >> 23) - 127;
    const int toScale = min(max(12 - exponent, -100), 100);
    const float scale = powerOfTwo(toScale);
    const float factor = 2.0f * image.inverse * facts.inverse * scale;
    return {-factor, scale, facts.norm * scale, powerOfTwo(-toScale)};
}

__device__ __forceinline__ RowError
errorOf(const Params& params,
        const QueryFacts& facts,
        const TensorImageFacts& image) {
    const float up = 1.0f + (params.queries.d + 17) * 0x1p-23f;
    const float norm =
            __fmul_ru(rootAbove(__fadd_ru(facts.norm, 0x1p-120f)), up);
    const float ofImage = __fadd_ru(norm, facts.residual);
    constexpr float kOfProduct = 0x1p-22f;
    const float twice = __fadd_ru(__fmul_ru(2.0f, params.cut), kOfProduct);
    // tensorScanError, in powers of x, and RowBound::at.
    float constant = __fmul_ru(
            __fmul_ru(ofImage, image.residual), __fadd_ru(2.0f, twice));
    constant = __fadd_ru(constant, image.normError);
    constant = __fmaf_ru(__fmul_ru(params.rounding, norm), norm, constant);
    constant = __fadd_ru(constant, (params.queries.d + 8) * 0x1p-146f);
    const float linear =
            __fmaf_ru(ofImage, twice, __fmul_ru(2.0f, facts.residual));
    // Where the factor left the range of float32, nothing is known.
    const float factor = scalesOf(facts, image).factor;
    const bool isKnown = factor < -0x1p-110f && factor > -0x1p110f;
    return {isKnown ? constant : __builtin_huge_valf(),
            linear,
            norm,
            __fadd_ru(ofImage, image.residual)};
}

} // namespace faiss_bits::at_once
