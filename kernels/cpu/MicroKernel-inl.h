// The first loop: a tile of queries x vectors in registers, component by
// component, and the comparison with the limits of its rows.

#include <hwy/highway.h>

#include <cmath>

#include "kernels/cpu/Emit-inl.h"
#include "kernels/cpu/KernelTypes.h"
#include "kernels/cpu/Packing-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_MICROKERNEL_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_MICROKERNEL_INL_H_
#undef FAISS_BITS_KERNELS_CPU_MICROKERNEL_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_MICROKERNEL_INL_H_
#endif

// Loops over a tile vanish only if the compiler unrolls them all.
#if HWY_COMPILER_CLANG
#define FAISS_BITS_UNROLL _Pragma("clang loop unroll(full)")
#else
#define FAISS_BITS_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Powers of |q - x|: by multiplication where p is a multiple of a half.
template <class T>
struct PowerOf {
    explicit PowerOf(T power) : exponent(power) {
        const T twice = power * 2;
        simple = twice <= 64 && twice == std::floor(twice);
        halves = simple ? int(twice) : 0;
    }

    template <class D, class V>
    HWY_NOINLINE V operator()(D d, V base) const {
        if (simple) {
            V result = halves & 1 ? hn::Sqrt(base) : hn::Set(d, T(1));
            for (int rest = halves >> 1; rest; rest >>= 1) {
                if (rest & 1) {
                    result = hn::Mul(result, base);
                }
                base = hn::Mul(base, base);
            }
            return result;
        }
        HWY_ALIGN T lanes[hn::MaxLanes(D())];
        hn::Store(base, d, lanes);
        for (T& lane : lanes) {
            lane = std::pow(lane, exponent);
        }
        return hn::Load(d, lanes);
    }

    T exponent;
    bool simple;
    int halves;
};

/// How a pair of components enters a sum, and how two sums make one.
struct ProductTerms {
    template <class D, class V, class P>
    static HWY_INLINE V add(D, V sum, V q, V x, const P&) {
        return hn::MulAdd(q, x, sum);
    }
    template <class D, class V>
    static HWY_INLINE V join(D, V a, V b) {
        return hn::Add(a, b);
    }
};
struct AbsoluteTerms : ProductTerms {
    template <class D, class V, class P>
    static HWY_INLINE V add(D, V sum, V q, V x, const P&) {
        return hn::Add(sum, hn::Abs(hn::Sub(q, x)));
    }
};
struct SquareTerms : ProductTerms {
    template <class D, class V, class P>
    static HWY_INLINE V add(D, V sum, V q, V x, const P&) {
        const V difference = hn::Sub(q, x);
        return hn::MulAdd(difference, difference, sum);
    }
};
struct LargestTerms {
    /// As integers, which order as numbers without a sign do; NaN is largest.
    template <class D, class V>
    static HWY_INLINE V join(D d, V a, V b) {
        const hn::RebindToSigned<D> di;
        return hn::BitCast(d, hn::Max(hn::BitCast(di, a), hn::BitCast(di, b)));
    }
    template <class D, class V, class P>
    static HWY_INLINE V add(D d, V sum, V q, V x, const P&) {
        return join(d, sum, hn::Abs(hn::Sub(q, x)));
    }
};
struct PowerTerms : ProductTerms {
    template <class D, class V, class P>
    static HWY_INLINE V add(D d, V sum, V q, V x, const P& power) {
        return hn::Add(sum, power(d, hn::Abs(hn::Sub(q, x))));
    }
};

template <KernelMetric kMetric>
constexpr auto tileTerms() {
    if constexpr (kMetric == KernelMetric::L1) {
        return AbsoluteTerms();
    } else if constexpr (kMetric == KernelMetric::Linf) {
        return LargestTerms();
    } else if constexpr (kMetric == KernelMetric::Squares) {
        return SquareTerms();
    } else if constexpr (kMetric == KernelMetric::Power) {
        return PowerTerms();
    } else {
        return ProductTerms();
    }
}

/// What a tile needs; rows of queries stand tileQueries<T>() apart.
template <class T>
struct TileArguments {
    const T* queries; ///< [depth][tileQueries]
    const T* vectors; ///< [depth][tileVectors]
    int depth;
    bool first, last; ///< block of the depth
    T* partial;       ///< [rows][tileVectors]: sums of earlier blocks
    const T* vectorTerm;
    const T* filter; ///< of the rows
    bool force;      ///< values are wanted even if none passes the filter
    T* values;       ///< [rows][tileVectors]
};

/// Stores a tile if one of its values passes the filter of its row, or all are
/// wanted: true if so.
///
/// The sign of (limit - value) is set where a value is beyond the limit. One
/// test of all signs is less work than a comparison for each of them. NaN may
/// have either sign: it is under no limit, and emitting compares again.
template <int kRows, class T, class V>
HWY_INLINE bool storeIfUnder(
        const TileArguments<T>& a,
        const V (&values)[kRows][kTileWidth]) {
    const hn::ScalableTag<T> d;
    const hn::RebindToSigned<decltype(d)> di;
    constexpr int kLanes = lanesOf<T>();
    V beyond[kTileWidth];
    FAISS_BITS_UNROLL
    for (int v = 0; v < kTileWidth; ++v) {
        beyond[v] = hn::BitCast(d, hn::Set(di, -1));
    }
    FAISS_BITS_UNROLL
    for (int i = 0; i < kRows; ++i) {
        const V limit = hn::Set(d, a.filter[i]);
        FAISS_BITS_UNROLL
        for (int v = 0; v < kTileWidth; ++v) {
            beyond[v] = hn::And(beyond[v], hn::Sub(limit, values[i][v]));
        }
    }
    auto all = hn::BitCast(di, beyond[0]);
    FAISS_BITS_UNROLL
    for (int v = 1; v < kTileWidth; ++v) {
        all = hn::And(all, hn::BitCast(di, beyond[v]));
    }
    if (HWY_LIKELY(!a.force && hn::AllTrue(di, hn::Lt(all, hn::Zero(di))))) {
        return false;
    }
    FAISS_BITS_UNROLL
    for (int i = 0; i < kRows; ++i) {
        FAISS_BITS_UNROLL
        for (int v = 0; v < kTileWidth; ++v) {
            hn::Store(
                    values[i][v], d, a.values + (i * kTileWidth + v) * kLanes);
        }
    }
    return true;
}

/// kRows queries against a panel of vectors. True: values hold the tile, as
/// storeIfUnder leaves it.
template <KernelMetric kMetric, int kRows, class T>
HWY_INLINE bool computeTile(
        const TileArguments<T>& a,
        const PowerOf<T>& power) {
    using Terms = decltype(tileTerms<kMetric>());
    const hn::ScalableTag<T> d;
    using V = hn::Vec<decltype(d)>;
    constexpr int kLanes = lanesOf<T>();
    constexpr int kTile = tileQueries<T>();
    V sums[kRows][kTileWidth];
    if (a.first) {
        FAISS_BITS_UNROLL
        for (int i = 0; i < kRows; ++i) {
            FAISS_BITS_UNROLL
            for (int v = 0; v < kTileWidth; ++v) {
                sums[i][v] = hn::Zero(d);
            }
        }
    } else {
        FAISS_BITS_UNROLL
        for (int i = 0; i < kRows; ++i) {
            FAISS_BITS_UNROLL
            for (int v = 0; v < kTileWidth; ++v) {
                sums[i][v] =
                        hn::Load(d, a.partial + (i * kTileWidth + v) * kLanes);
            }
        }
    }
    const T* HWY_RESTRICT q = a.queries;
    const T* HWY_RESTRICT x = a.vectors;
    for (int p = 0; p < a.depth; ++p) {
        V vectors[kTileWidth];
        FAISS_BITS_UNROLL
        for (int v = 0; v < kTileWidth; ++v) {
            vectors[v] = hn::Load(d, x + v * kLanes);
        }
        FAISS_BITS_UNROLL
        for (int i = 0; i < kRows; ++i) {
            const V query = hn::Set(d, q[i]);
            FAISS_BITS_UNROLL
            for (int v = 0; v < kTileWidth; ++v) {
                sums[i][v] =
                        Terms::add(d, sums[i][v], query, vectors[v], power);
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
                        sums[i][v],
                        d,
                        a.partial + (i * kTileWidth + v) * kLanes);
            }
        }
        return false;
    }

    V terms[kTileWidth];
    if constexpr (
            kMetric == KernelMetric::L2 || kMetric == KernelMetric::Cosine) {
        FAISS_BITS_UNROLL
        for (int v = 0; v < kTileWidth; ++v) {
            terms[v] = hn::Load(d, a.vectorTerm + v * kLanes);
        }
    }
    FAISS_BITS_UNROLL
    for (int i = 0; i < kRows; ++i) {
        FAISS_BITS_UNROLL
        for (int v = 0; v < kTileWidth; ++v) {
            if constexpr (kMetric == KernelMetric::L2) {
#if HWY_NATIVE_FMA
                sums[i][v] =
                        hn::MulAdd(sums[i][v], hn::Set(d, T(-2)), terms[v]);
#else
                // Twice the sum alone may overflow where the whole does not.
                sums[i][v] = hn::Sub(hn::Sub(terms[v], sums[i][v]), sums[i][v]);
#endif
            } else if constexpr (kMetric == KernelMetric::Cosine) {
                sums[i][v] = hn::Mul(sums[i][v], terms[v]);
            }
        }
    }
    return storeIfUnder<kRows>(a, sums);
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
