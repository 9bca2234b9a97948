// The first loop over 16-bit integers: a tile of queries x vectors in
// registers, a pair of components at a time (Int16Types.h).

#include <hwy/highway.h>

#include "kernels/cpu/Int16Types.h"
#include "kernels/cpu/Loops-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_INT16TILES_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_INT16TILES_INL_H_
#undef FAISS_BITS_KERNELS_CPU_INT16TILES_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_INT16TILES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Sums and pairs of 16-bit integers: the products of two neighbours are added
/// to the sum in their place. Highway's function leaves open which. With
/// `kFused`, one instruction in place of two: twice as fast where these share
/// two ports (Intel), and as fast where they do not (Zen 4). Assembly, as it is
/// not of the instructions that this file is compiled for.
using Int16Sums = hn::Vec<hn::ScalableTag<int32_t>>;
template <bool kFused>
HWY_INLINE Int16Sums addPairs(Int16Sums sum, Int16Sums a, Int16Sums b) {
#if HWY_TARGET <= HWY_AVX3
    if constexpr (kFused) {
        asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
        return sum;
    }
    return Int16Sums{
            _mm512_add_epi32(sum.raw, _mm512_madd_epi16(a.raw, b.raw))};
#elif HWY_TARGET <= HWY_AVX2
    return Int16Sums{
            _mm256_add_epi32(sum.raw, _mm256_madd_epi16(a.raw, b.raw))};
#else
    return Int16Sums{_mm_add_epi32(sum.raw, _mm_madd_epi16(a.raw, b.raw))};
#endif
}

/// Tiles of integers; the last value of a row is what its sums are multiplied
/// by. Sums of earlier blocks of the depth are integers, too.
template <KernelMetric kMetric, bool kFused>
struct Int16Tiles {
    template <int kRows>
    HWY_INLINE bool compute(const TileArguments<float>& a) const {
        const hn::ScalableTag<float> d;
        const hn::ScalableTag<int32_t> di;
        constexpr int kLanes = lanesOf<float>();
        constexpr int kTile = tileQueries<float>();
        Int16Sums sums[kRows][kTileWidth];
        FAISS_BITS_UNROLL
        for (int i = 0; i < kRows; ++i) {
            FAISS_BITS_UNROLL
            for (int v = 0; v < kTileWidth; ++v) {
                sums[i][v] = hn::Zero(di);
            }
        }
        if (!a.first) {
            FAISS_BITS_UNROLL
            for (int i = 0; i < kRows; ++i) {
                FAISS_BITS_UNROLL
                for (int v = 0; v < kTileWidth; ++v) {
                    sums[i][v] = hn::BitCast(
                            di,
                            hn::Load(
                                    d,
                                    a.partial + (i * kTileWidth + v) * kLanes));
                }
            }
        }
        const float* HWY_RESTRICT q = a.queries;
        const float* HWY_RESTRICT x = a.vectors;
        const int pairs = a.last ? a.depth - 1 : a.depth;
        for (int p = 0; p < pairs; ++p) {
            Int16Sums vectors[kTileWidth];
            FAISS_BITS_UNROLL
            for (int v = 0; v < kTileWidth; ++v) {
                vectors[v] = hn::BitCast(di, hn::Load(d, x + v * kLanes));
            }
            FAISS_BITS_UNROLL
            for (int i = 0; i < kRows; ++i) {
                const Int16Sums query = hn::BitCast(di, hn::Set(d, q[i]));
                FAISS_BITS_UNROLL
                for (int v = 0; v < kTileWidth; ++v) {
                    sums[i][v] =
                            addPairs<kFused>(sums[i][v], query, vectors[v]);
                }
            }
            q += kTile;
            x += kTileWidth * kLanes;
        }
        if (!a.last) {
            FAISS_BITS_UNROLL
            for (int i = 0; i < kRows; ++i) {
                FAISS_BITS_UNROLL
                for (int v = 0; v < kTileWidth; ++v) {
                    hn::Store(
                            hn::BitCast(d, sums[i][v]),
                            d,
                            a.partial + (i * kTileWidth + v) * kLanes);
                }
            }
            return false;
        }
        hn::Vec<decltype(d)> values[kRows][kTileWidth];
        FAISS_BITS_UNROLL
        for (int v = 0; v < kTileWidth; ++v) {
            const auto unit = hn::Load(d, x + v * kLanes);
            const auto term = hn::Load(d, a.vectorTerm + v * kLanes);
            FAISS_BITS_UNROLL
            for (int i = 0; i < kRows; ++i) {
                const auto sum = hn::Mul(hn::ConvertTo(d, sums[i][v]), unit);
                const auto factor = hn::Set(d, q[i]);
                if constexpr (kMetric == KernelMetric::L2) {
                    values[i][v] = hn::MulAdd(sum, factor, term);
                } else {
                    values[i][v] = hn::Mul(sum, factor);
                }
            }
        }
        return storeIfUnder<kRows>(a, values);
    }
};

template <KernelMetric kMetric, bool kFused>
void runInt16Tiles(const TileJob<float>& job) {
    runTilesBy(job, Int16Tiles<kMetric, kFused>());
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
