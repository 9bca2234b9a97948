// What the kernels of canonical distances share: components as float64, slots
// that are joined, keys, and what fused sums say of canonical ones.

#include <hwy/highway.h>

#include "kernels/cpu/CanonicalTerms-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_CANONICAL_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_CANONICAL_INL_H_
#undef FAISS_BITS_KERNELS_CPU_CANONICAL_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_CANONICAL_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// At most one number for every slot.
using SlotTag = hn::CappedTag<double, kCanonicalSlots>;
using SlotVec = hn::Vec<SlotTag>;

constexpr int slotLanes() {
    return int(hn::MaxLanes(SlotTag()));
}

/// Of d fused squares, relative to their sum: the same differences are squared
/// and added on both sides, with at most d + 1 roundings each.
inline double fusedShare(int d) {
    return 4 * (double(d) + 4) * 0x1p-53;
}

/// Of |x|^2 + |q|^2 - 2 <x, q>, relative to the first two: each of the three
/// has at most d roundings relative to that, as have its additions.
inline double fusedProductShare(int d) {
    return 8 * (double(d) + 8) * 0x1p-53;
}

/// Do numbers within `error` of each value have one float32? NaN is like
/// nothing.
template <class D, class V>
HWY_INLINE bool roundAlike(D d, V values, V error) {
    const hn::Rebind<float, D> narrow;
    const auto low = hn::DemoteTo(narrow, hn::Sub(values, error));
    const auto high = hn::DemoteTo(narrow, hn::Add(values, error));
    (void)d;
    return hn::AllTrue(narrow, hn::Eq(low, high));
}

/// True if canonical distances are worth looking for by fused ones.
template <KernelMetric kMetric, class T>
constexpr bool triesFused() {
#if HWY_NATIVE_FMA
    return sizeof(T) == sizeof(float) &&
            (kMetric == KernelMetric::L2 || kMetric == KernelMetric::Squares);
#else
    return false;
#endif
}

/// The slots of one sum that stand in different vectors, or lanes of them,
/// joined: ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)), by halves.
template <class Terms, class D, class V, int kCount>
HWY_INLINE V joinVectors(D d, V (&sums)[kCount]) {
    FAISS_BITS_UNROLL_SUMS
    for (int half = kCount / 2; half > 0; half /= 2) {
        FAISS_BITS_UNROLL_SUMS
        for (int i = 0; i < half; ++i) {
            sums[i] = Terms::join(d, sums[i], sums[i + half]);
        }
    }
    return sums[0];
}
template <class Terms, class D, class V>
HWY_INLINE double joinHalves(D d, V sum) {
#if HWY_TARGET != HWY_SCALAR // which has no halves
    if constexpr (hn::MaxLanes(D()) > 1) {
        const hn::Half<D> half;
        return joinHalves<Terms>(
                half,
                Terms::join(
                        half,
                        hn::LowerHalf(half, sum),
                        hn::UpperHalf(half, sum)));
    }
#endif
    (void)d;
    return hn::GetLane(sum);
}

/// float32 or float64 components as float64.
template <class D, class T>
HWY_INLINE hn::Vec<D> loadWide(D d, const T* from) {
    if constexpr (sizeof(T) == sizeof(double)) {
        return hn::LoadU(d, from);
    } else {
        const hn::Rebind<T, D> narrow;
        return hn::PromoteTo(d, hn::LoadU(narrow, from));
    }
}

/// The same of the first `count` of them, zeros behind.
template <class D, class T>
HWY_INLINE hn::Vec<D> loadWideFirst(D d, const T* from, int count) {
    HWY_ALIGN T lanes[kCanonicalSlots] = {};
    for (int i = 0; i < count; ++i) {
        lanes[i] = from[i];
    }
    return loadWide(d, lanes);
}

/// The key of a joined sum; a float32 one is rounded to it.
template <KernelMetric kMetric, class T>
HWY_INLINE T keyOf(double distance) {
    T rounded;
    if constexpr (sizeof(T) == sizeof(double)) {
        rounded = distance + 0.0;
    } else {
        rounded = canonical::toFloat32(distance);
    }
    return isNegated<kMetric>() ? -rounded : rounded;
}

/// Keys of joined sums.
template <KernelMetric kMetric, class D, class V, class T>
HWY_INLINE void storeKeys(D d, V distances, T* to) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
    // Their conversion to float32 makes the largest number of infinity.
    HWY_ALIGN double lanes[hn::MaxLanes(D())];
    hn::Store(distances, d, lanes);
    for (size_t i = 0; i < hn::Lanes(d); ++i) {
        to[i] = keyOf<kMetric, T>(lanes[i]);
    }
#else
    const hn::Rebind<T, D> narrow;
    const auto zero = hn::Zero(narrow);
    (void)d;
    if constexpr (sizeof(T) == sizeof(double)) {
        const auto keys = hn::Add(distances, zero);
        hn::StoreU(isNegated<kMetric>() ? hn::Neg(keys) : keys, narrow, to);
    } else {
        const auto keys = hn::Add(hn::DemoteTo(narrow, distances), zero);
        hn::StoreU(isNegated<kMetric>() ? hn::Neg(keys) : keys, narrow, to);
    }
#endif
}

/// a / b, and 0 for 0 / 0.
template <class D, class V>
HWY_INLINE V quotientOf(D d, V a, V b) {
    const auto zero = hn::Zero(d);
    return hn::IfThenZeroElse(
            hn::And(hn::Eq(a, zero), hn::Eq(b, zero)), hn::Div(a, b));
}

/// Canonical cosines of their three sums.
template <class D, class V>
HWY_INLINE V cosineOf(D d, V product, V vectorSquares, double querySquares) {
    const auto squares = hn::Mul(vectorSquares, hn::Set(d, querySquares));
    const auto zero = hn::Zero(d);
    return hn::IfThenElse(
            hn::Eq(squares, zero), zero, hn::Div(product, hn::Sqrt(squares)));
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
