// Terms of canonical distances in vectors of float64: the operations of
// kernels/canonical/Distance.h, each rounded and none fused, so that every
// lane has the bits of the definition.

#include <hwy/highway.h>

#include <limits>

#include "kernels/canonical/Distance.h"
#include "kernels/cpu/CanonicalTypes.h"

#if defined(FAISS_BITS_KERNELS_CPU_CANONICALTERMS_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_CANONICALTERMS_INL_H_
#undef FAISS_BITS_KERNELS_CPU_CANONICALTERMS_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_CANONICALTERMS_INL_H_
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

/// |x - q| / (|x| + |q|), where 0 / 0 counts 0.
struct CanonicalShares : CanonicalProduct {
    template <class D, class V>
    static HWY_INLINE V add(D d, V sum, V x, V q, const CanonicalPowers&) {
        const auto size = hn::Add(hn::Abs(x), hn::Abs(q));
        const auto share = hn::Div(hn::Abs(hn::Sub(x, q)), size);
        return hn::Add(
                sum, hn::IfThenZeroElse(hn::Eq(size, hn::Zero(d)), share));
    }
};

struct CanonicalAbsoluteSums : CanonicalProduct {
    template <class D, class V>
    static HWY_INLINE V add(D, V sum, V x, V q, const CanonicalPowers&) {
        return hn::Add(sum, hn::Abs(hn::Add(x, q)));
    }
};

struct CanonicalSmaller : CanonicalProduct {
    template <class D, class V>
    static HWY_INLINE V add(D, V sum, V x, V q, const CanonicalPowers&) {
        const auto isX = hn::Or(hn::IsNaN(x), hn::Lt(x, q));
        return hn::Add(sum, hn::IfThenElse(isX, x, q));
    }
};

struct CanonicalLarger : CanonicalProduct {
    template <class D, class V>
    static HWY_INLINE V add(D, V sum, V x, V q, const CanonicalPowers&) {
        const auto isX = hn::Or(hn::IsNaN(x), hn::Gt(x, q));
        return hn::Add(sum, hn::IfThenElse(isX, x, q));
    }
};

/// canonical::log.
template <class D, class V>
HWY_INLINE V canonicalLog(D d, V a) {
    const hn::RebindToSigned<D> di;
    const auto one = hn::Set(d, 1.0), zero = hn::Zero(d);
    const auto bits = hn::BitCast(di, a);
    const auto rootHalf = hn::Set(di, int64_t(0x3fe6a09e667f3bcd));
    const auto e = hn::ShiftRight<52>(hn::Sub(bits, rootHalf));
    const auto m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<52>(e)));
    const auto s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
    const auto z = hn::Mul(s, s);
    auto sum = hn::Set(d, 1.0 / 23);
    FAISS_BITS_UNROLL_SUMS
    for (int odd = 21; odd >= 3; odd -= 2) {
        sum = hn::Add(hn::Mul(sum, z), hn::Set(d, 1.0 / odd));
    }
    const auto s2 = hn::Add(s, s);
    const auto ofM = hn::Add(s2, hn::Mul(hn::Mul(s2, z), sum));
    const auto exponent = hn::ConvertTo(d, e);
    const auto high = hn::Mul(exponent, hn::Set(d, 0x1.62e42feep-1));
    const auto low = hn::Mul(exponent, hn::Set(d, 0x1.a39ef35793c76p-33));
    const auto ofNumber = hn::Add(high, hn::Add(ofM, low));
    constexpr double kInfinity = __builtin_huge_val();
    const auto infinity = hn::Set(d, kInfinity);
    const auto ofOthers = hn::IfThenElse(
            hn::Eq(a, zero),
            hn::Neg(infinity),
            hn::Set(d, std::numeric_limits<double>::quiet_NaN()));
    return hn::IfThenElse(
            hn::Eq(a, infinity),
            a,
            hn::IfThenElse(hn::Gt(a, zero), ofNumber, ofOthers));
}

/// x log(x / m) + q log(q / m) with m = (x + q) / 2, where 0 log 0 counts 0.
struct CanonicalDivergences : CanonicalProduct {
    template <class D, class V>
    static HWY_INLINE V add(D d, V sum, V x, V q, const CanonicalPowers&) {
        const auto m = hn::Mul(hn::Set(d, 0.5), hn::Add(x, q));
        return hn::Add(sum, hn::Add(term(d, x, m), term(d, q, m)));
    }

   private:
    template <class D, class V>
    static HWY_INLINE V term(D d, V x, V m) {
        return hn::IfThenZeroElse(
                hn::Eq(x, hn::Zero(d)),
                hn::Mul(x, canonicalLog(d, hn::Div(x, m))));
    }
};

/// The sum that is the distance, or what is divided to become it.
template <KernelMetric kMetric, class T>
constexpr auto canonicalTerms() {
    if constexpr (
            kMetric == KernelMetric::L1 ||
            kMetric == KernelMetric::BrayCurtis) {
        return CanonicalAbsolute();
    } else if constexpr (kMetric == KernelMetric::Linf) {
        return CanonicalLargest();
    } else if constexpr (
            kMetric == KernelMetric::L2 || kMetric == KernelMetric::Squares) {
        return CanonicalSquares();
    } else if constexpr (kMetric == KernelMetric::Power) {
        return CanonicalPower();
    } else if constexpr (kMetric == KernelMetric::Canberra) {
        return CanonicalShares();
    } else if constexpr (kMetric == KernelMetric::JensenShannon) {
        return CanonicalDivergences();
    } else if constexpr (kMetric == KernelMetric::Jaccard) {
        return CanonicalSmaller();
    } else if constexpr (HWY_NATIVE_FMA && sizeof(T) == sizeof(float)) {
        return FusedProduct();
    } else {
        return CanonicalProduct();
    }
}

/// The sum that it is divided by, if there is one: 0 / 0 is 0.
template <KernelMetric kMetric>
constexpr auto canonicalDivisors() {
    if constexpr (kMetric == KernelMetric::BrayCurtis) {
        return CanonicalAbsoluteSums();
    } else if constexpr (kMetric == KernelMetric::Jaccard) {
        return CanonicalLarger();
    }
}

/// True if keys are negated distances.
template <KernelMetric kMetric>
constexpr bool isNegated() {
    return kMetric == KernelMetric::Product ||
            kMetric == KernelMetric::Cosine || kMetric == KernelMetric::Jaccard;
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
