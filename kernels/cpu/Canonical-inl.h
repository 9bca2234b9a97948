// Terms of canonical distances in vectors of float64: the operations of
// kernels/canonical/Distance.h, each rounded and none fused, so that every
// lane has the bits of the definition.

#include <hwy/highway.h>

#include "kernels/canonical/Distance.h"
#include "kernels/cpu/CanonicalTypes.h"

#if defined(FAISS_BITS_KERNELS_CPU_CANONICAL_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_CANONICAL_INL_H_
#undef FAISS_BITS_KERNELS_CPU_CANONICAL_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_CANONICAL_INL_H_
#endif

// Loops over sums vanish only if the compiler unrolls them all.
#if HWY_COMPILER_CLANG
#define FAISS_BITS_UNROLL_SUMS _Pragma("clang loop unroll(full)")
#else
#define FAISS_BITS_UNROLL_SUMS _Pragma("GCC unroll 32")
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

/// canonical::Power, by vectors where it is made of products.
struct CanonicalPowers {
    explicit CanonicalPowers(double p)
            : scalar(p), halves(scalar.isSimple() ? int(2 * p) : 0) {}

    template <class D, class V>
    HWY_NOINLINE V operator()(D d, V base) const {
        if (halves > 0) {
            auto result = halves & 1 ? hn::Sqrt(base) : hn::Set(d, 1.0);
            for (int rest = halves >> 1; rest != 0; rest >>= 1) {
                if (rest & 1) {
                    result = hn::Mul(result, base);
                }
                base = hn::Mul(base, base);
            }
            return result;
        }
        HWY_ALIGN double lanes[hn::MaxLanes(D())];
        hn::Store(base, d, lanes);
        for (double& lane : lanes) {
            lane = scalar(lane);
        }
        return hn::Load(d, lanes);
    }

    canonical::Power scalar;
    int halves;
};

struct CanonicalProduct {
    template <class D, class V>
    static HWY_INLINE V add(D, V sum, V x, V q, const CanonicalPowers&) {
        return hn::Add(sum, hn::Mul(x, q));
    }
    template <class D, class V>
    static HWY_INLINE V join(D, V a, V b) {
        return hn::Add(a, b);
    }
};

/// The same where the product of two float32 is exact.
struct FusedProduct : CanonicalProduct {
    template <class D, class V>
    static HWY_INLINE V add(D, V sum, V x, V q, const CanonicalPowers&) {
        return hn::MulAdd(x, q, sum);
    }
};

struct CanonicalSquares : CanonicalProduct {
    template <class D, class V>
    static HWY_INLINE V add(D, V sum, V x, V q, const CanonicalPowers&) {
        const auto difference = hn::Sub(x, q);
        return hn::Add(sum, hn::Mul(difference, difference));
    }
};

/// Squares whose addition is fused: less work, and not canonical. The sum is
/// within fusedShare() of the canonical one; where numbers that far apart have
/// the same float32, that is the canonical distance (roundsAlike).
struct FusedSquares : CanonicalProduct {
    template <class D, class V>
    static HWY_INLINE V add(D, V sum, V x, V q, const CanonicalPowers&) {
        const auto difference = hn::Sub(x, q);
        return hn::MulAdd(difference, difference, sum);
    }
};

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

struct CanonicalAbsolute : CanonicalProduct {
    template <class D, class V>
    static HWY_INLINE V add(D, V sum, V x, V q, const CanonicalPowers&) {
        return hn::Add(sum, hn::Abs(hn::Sub(x, q)));
    }
};
struct CanonicalLargest {
    /// As integers, which order as numbers without a sign do; NaN is largest.
    template <class D, class V>
    static HWY_INLINE V join(D d, V a, V b) {
        const hn::RebindToSigned<D> di;
        return hn::BitCast(d, hn::Max(hn::BitCast(di, a), hn::BitCast(di, b)));
    }
    template <class D, class V>
    static HWY_INLINE V add(D d, V sum, V x, V q, const CanonicalPowers&) {
        return join(d, sum, hn::Abs(hn::Sub(x, q)));
    }
};
struct CanonicalPower : CanonicalProduct {
    template <class D, class V>
    static HWY_INLINE V
    add(D d, V sum, V x, V q, const CanonicalPowers& power) {
        return hn::Add(sum, power(d, hn::Abs(hn::Sub(x, q))));
    }
};

template <KernelMetric kMetric, class T>
constexpr auto canonicalTerms() {
    if constexpr (kMetric == KernelMetric::L1) {
        return CanonicalAbsolute();
    } else if constexpr (kMetric == KernelMetric::Linf) {
        return CanonicalLargest();
    } else if constexpr (
            kMetric == KernelMetric::L2 || kMetric == KernelMetric::Squares) {
        return CanonicalSquares();
    } else if constexpr (kMetric == KernelMetric::Power) {
        return CanonicalPower();
    } else if constexpr (HWY_NATIVE_FMA && sizeof(T) == sizeof(float)) {
        return FusedProduct();
    } else {
        return CanonicalProduct();
    }
}

/// True if keys are negated distances.
template <KernelMetric kMetric>
constexpr bool isNegated() {
    return kMetric == KernelMetric::Product || kMetric == KernelMetric::Cosine;
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
