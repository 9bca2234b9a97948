// Distances of one query from as many rows as a vector has lanes, read where
// they lie; the sums of all these rows are joined at once.

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/Emit-inl.h"
#include "kernels/cpu/KernelTypes.h"
#include "kernels/cpu/MicroKernel-inl.h"
#include "kernels/cpu/NearRows-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_DIRECTROWS_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_DIRECTROWS_INL_H_
#undef FAISS_BITS_KERNELS_CPU_DIRECTROWS_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_DIRECTROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Joins neighbouring lanes of kCount vectors with the sums of rows, one row
/// after the other, until one vector holds them all: with all rows that have a
/// lane in the result, lane i of it is the sum of row i. Overwrites sums.
template <class Terms, class D, int kCount>
HWY_INLINE hn::Vec<D> joinLanes(D d, hn::Vec<D> (&sums)[kCount]) {
#if HWY_TARGET != HWY_SCALAR
    FAISS_BITS_UNROLL
    for (int count = kCount / 2; count > 0; count /= 2) {
        FAISS_BITS_UNROLL
        for (int i = 0; i < count; ++i) {
            const auto low = sums[2 * i];
            const auto high = sums[2 * i + 1];
            sums[i] = Terms::join(
                    d,
                    hn::ConcatEven(d, high, low),
                    hn::ConcatOdd(d, high, low));
        }
    }
#else
    (void)d;
#endif
    return sums[0];
}

/// Sums of one row, lane by lane. Memory is read in order, which the prefetch
/// of processors needs to keep up; four sums hide the latency of an addition.
/// Fetches what is at `ahead`.
template <class Terms, bool kSelf, class T, class Noted>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> scanRow(
        const T* query,
        const T* row,
        const T* ahead,
        const ScanRows<T>& rows,
        Noted& noted) {
    const hn::ScalableTag<T> d;
    using V = hn::Vec<decltype(d)>;
    constexpr int kLanes = lanesOf<T>();
    constexpr int kSums = 4;
    constexpr int kLine = std::max(kLanes, int(64 / sizeof(T)));
    const auto add = [&](V sum, V q, V x) HWY_ATTR {
        return Terms::add(d, sum, kSelf ? x : q, x, rows.power);
    };
    const int depth = rows.depth;
    if (depth <= kLanes) {
        hwy::Prefetch(ahead);
        const V x = loadFirst(d, row, depth);
        if constexpr (Noted::kSquares) {
            noted.take(hn::Mul(x, x));
        }
        return add(hn::Zero(d), hn::Load(d, query), x);
    }
    if (depth <= 2 * kLanes) {
        hwy::Prefetch(ahead);
        hwy::Prefetch(ahead + kLanes);
        const V x = hn::LoadU(d, row);
        const V y = loadFirst(d, row + kLanes, depth - kLanes);
        if constexpr (Noted::kSquares) {
            noted.take(hn::MulAdd(y, y, hn::Mul(x, x)));
        }
        return Terms::join(
                d,
                add(hn::Zero(d), hn::Load(d, query), x),
                add(hn::Zero(d), hn::Load(d, query + kLanes), y));
    }
    V sums[kSums], squares[kSums];
    FAISS_BITS_UNROLL
    for (int i = 0; i < kSums; ++i) {
        sums[i] = squares[i] = hn::Zero(d);
    }
    const auto take = [&](int i, V x, const T* with) HWY_ATTR {
        if constexpr (Noted::kSquares) {
            x = loadedOnce(x);
            squares[i] = hn::MulAdd(x, x, squares[i]);
        }
        sums[i] = add(sums[i], hn::Load(d, with), x);
    };
    idx_t p = 0;
    for (; p + kSums * kLanes <= depth; p += kSums * kLanes) {
        FAISS_BITS_UNROLL
        for (int i = 0; i < kSums * kLanes; i += kLine) {
            hwy::Prefetch(ahead + p + i);
        }
        FAISS_BITS_UNROLL
        for (int i = 0; i < kSums; ++i) {
            const idx_t at = p + i * kLanes;
            take(i, hn::LoadU(d, row + at), query + at);
        }
    }
    for (; p + kLanes <= depth; p += kLanes) {
        hwy::Prefetch(ahead + p);
        take(0, hn::LoadU(d, row + p), query + p);
    }
    if (p < depth) {
        hwy::Prefetch(ahead + p);
        take(1, loadFirst(d, row + p, int(depth - p)), query + p);
    }
    if constexpr (Noted::kSquares) {
        noted.take(
                hn::Add(hn::Add(squares[0], squares[1]),
                        hn::Add(squares[2], squares[3])));
    }
    return Terms::join(
            d,
            Terms::join(d, sums[0], sums[1]),
            Terms::join(d, sums[2], sums[3]));
}

/// One value for each of as many rows as there are lanes, `valid` of which
/// exist. With kSelf, rows are their own queries; with kNear, rows are in a
/// cache.
template <class Terms, bool kSelf, bool kNear, class T, class Noted>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> scanAnyRows(
        const T* query,
        const ScanRows<T>& rows,
        idx_t first,
        int valid,
        Noted& noted) {
    const hn::ScalableTag<T> d;
    constexpr int kLanes = lanesOf<T>();
    // The code of a few rows, in a loop: that of all of them is more than what
    // processors hold decoded, and that of one has to store its sums, which
    // takes a quarter of the time where the vectors are in a cache.
    constexpr int kRows = std::min(4, kLanes);
    constexpr int kGroups = kLanes / kRows;
    HWY_ALIGN T joined[kGroups * kLanes];
    const idx_t fetched = std::min(first + rows.ahead, rows.last + 1 - valid);
    const bool areRegular = !rows.vectors.ids && valid >= kLanes;
    const idx_t stride = rows.vectors.stride;
    const T* next = rows.row(first);
    for (int group = 0; group < kGroups; ++group) {
        hn::Vec<decltype(d)> sums[kRows];
        const T* near[kRows];
        FAISS_BITS_UNROLL
        for (int i = 0; i < kRows; ++i) {
            const T* row = next;
            const T* ahead = next + (fetched - first) * stride;
            if (HWY_LIKELY(areRegular)) {
                next += stride;
            } else {
                // Rows that are not there: the last one again.
                const idx_t each = std::min(group * kRows + i, valid - 1);
                row = rows.row(first + each);
                ahead = rows.row(fetched + each);
            }
            if constexpr (kNear) {
                near[i] = row;
            } else {
                sums[i] = scanRow<Terms, kSelf>(query, row, ahead, rows, noted);
            }
        }
        if constexpr (kNear) {
            FAISS_BITS_UNROLL
            for (int i = 0; i < kRows; i += nearRows<T>()) {
                scanNearRows<Terms, kSelf>(
                        query, near + i, rows, noted, sums + i);
            }
        }
        hn::Store(joinLanes<Terms>(d, sums), d, joined + group * kLanes);
    }
    hn::Vec<decltype(d)> sums[kGroups];
    FAISS_BITS_UNROLL
    for (int group = 0; group < kGroups; ++group) {
        sums[group] = hn::Load(d, joined + group * kLanes);
    }
    return joinLanes<Terms>(d, sums);
}

/// The components of a query over and over, from its row with zeros behind.
template <int kDepth, class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> repeatQuery(D d, const T* query) {
    constexpr int kLanes = lanesOf<T>();
    if constexpr (kDepth == kLanes) {
        return hn::Load(d, query);
    } else if constexpr (kDepth == 1) {
        return hn::Set(d, query[0]);
    } else {
        HWY_ALIGN T repeated[kLanes];
        for (int i = 0; i < kLanes; ++i) {
            repeated[i] = query[i % kDepth];
        }
        return hn::Load(d, repeated);
    }
}

/// The same for rows of kDepth components, one behind the other, that fill
/// vectors: whole rows in a vector, so that fewer lanes are joined. The sums
/// are those of scanAnyRows, bit for bit: terms are joined in the same pairs.
template <class Terms, bool kSelf, int kDepth, class T, class Noted>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> scanShortRows(
        const T* query,
        const T* row,
        const PowerOf<T>& power,
        Noted& noted) {
    const hn::ScalableTag<T> d;
    const auto q = kSelf ? hn::Zero(d) : repeatQuery<kDepth>(d, query);
    hn::Vec<decltype(d)> sums[kDepth];
    FAISS_BITS_UNROLL
    for (int i = 0; i < kDepth; ++i) {
        auto x = hn::LoadU(d, row + i * lanesOf<T>());
        if constexpr (Noted::kSquares) {
            x = loadedOnce(x);
            noted.take(hn::Mul(x, x), i);
        }
        sums[i] = Terms::add(d, hn::Zero(d), kSelf ? x : q, x, power);
    }
    return joinLanes<Terms>(d, sums);
}

/// The same for three components.
template <class Terms, bool kSelf, class T, class Noted>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> scanTriples(
        const T* query,
        const T* row,
        const PowerOf<T>& power,
        Noted& noted) {
    const hn::ScalableTag<T> d;
    hn::Vec<decltype(d)> x[3];
    hn::LoadInterleaved3(d, row, x[0], x[1], x[2]);
    FAISS_BITS_UNROLL
    for (int i = 0; i < 3; ++i) {
        const auto q = kSelf ? x[i] : hn::Set(d, query[i]);
        if constexpr (Noted::kSquares) {
            noted.take(hn::Mul(x[i], x[i]), i);
        }
        x[i] = Terms::add(d, hn::Zero(d), q, x[i], power);
    }
    return Terms::join(d, Terms::join(d, x[0], x[1]), x[2]);
}

/// How the rows of a scan are read: kAnyDepth, kAnyDepthNear where these are in
/// a cache, or as many components that are one behind the other.
constexpr int kAnyDepth = 0;
constexpr int kAnyDepthNear = -1;

template <class Terms, bool kSelf, int kDepth, class T, class Noted>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> scanRows(
        const T* query,
        const ScanRows<T>& rows,
        idx_t first,
        int valid,
        Noted& noted) {
    if constexpr (kDepth > 0) {
        if (HWY_LIKELY(valid >= lanesOf<T>())) {
            const T* row = rows.row(first);
            if constexpr (kDepth == 3) {
                return scanTriples<Terms, kSelf>(query, row, rows.power, noted);
            } else {
                return scanShortRows<Terms, kSelf, kDepth>(
                        query, row, rows.power, noted);
            }
        }
    }
    return scanAnyRows<Terms, kSelf, kDepth == kAnyDepthNear>(
            query, rows, first, std::max(valid, 1), noted);
}

/// 1 / |x| of as many rows as there are lanes; 0 for those of length 0. What
/// `query` holds is read and not used.
template <int kDepth, class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> scanScales(
        const T* query,
        const ScanRows<T>& rows,
        idx_t first,
        int valid) {
    const hn::ScalableTag<T> d;
    const auto zero = hn::Zero(d);
    NothingNoted nothing;
    const auto squares = scanRows<ProductTerms, true, kDepth>(
            query, rows, first, valid, nothing);
    return hn::IfThenElse(
            hn::Eq(squares, zero),
            zero,
            hn::Div(hn::Set(d, T(1)), hn::Sqrt(squares)));
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
