// Sums of the terms of canonical distances of a few vectors: the lanes are the
// slots, and several vectors go side by side, which hides the latency of their
// additions.

#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "kernels/cpu/Canonical-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_CANONICALSUMS_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_CANONICALSUMS_INL_H_
#undef FAISS_BITS_KERNELS_CPU_CANONICALSUMS_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_CANONICALSUMS_INL_H_
#endif

// This file may be included once for each target.
#undef FAISS_BITS_WHOLE_ROWS
#undef FAISS_BITS_EITHER_ROWS

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Whole registers of 512 bits where the conversion of float32 components is
/// one instruction (Intel: half as many then, as conversions and multiply-adds
/// share two ports). Half the slots at most where it takes twice as long (Zen
/// 4). Where Highway has one target for both (before it knew AVX3_ZEN4), there
/// are kernels of either, and the processor is asked.
using HalfRows = hn::CappedTag<double, kCanonicalSlots / 2>;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#ifndef HWY_AVX3_ZEN4
#define FAISS_BITS_EITHER_ROWS
using RowTag = HalfRows;
#elif HWY_TARGET == HWY_AVX3_ZEN4
using RowTag = HalfRows;
#else
using RowTag = hn::CappedTag<double, kCanonicalSlots>;
#endif
#define FAISS_BITS_WHOLE_ROWS
using WholeRows = hn::CappedTag<double, kCanonicalSlots>;
#else
using RowTag = HalfRows;
#endif

template <class D>
constexpr int rowLanes() {
    return int(hn::MaxLanes(D()));
}

/// Vectors of a row that hold the slots of a sum.
template <class D>
constexpr int rowVecs() {
    return kCanonicalSlots / rowLanes<D>();
}

/// Rows that go side by side: 16 of 32 registers, 8 of 16, or what hides some
/// latency.
constexpr int kSideBySide = rowLanes<RowTag>() < 4 ? 2
        : HWY_TARGET <= HWY_AVX3                   ? 8
                                                   : 4;

/// The first `count` components of a row, zeros behind.
template <class D, class T>
HWY_INLINE hn::Vec<D> loadRowEnd(D d, const T* from, int count) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 // never read what the mask hides
    const hn::Rebind<T, D> narrow;
    const auto mask = hn::FirstN(narrow, size_t(count));
    const auto x = hn::MaskedLoad(mask, narrow, from);
    if constexpr (sizeof(T) == sizeof(double)) {
        return x;
    } else {
        return hn::PromoteTo(d, x);
    }
#else
    return loadWideFirst(d, from, count);
#endif
}

/// The joined sums of four rows, slots 0 to 3 and 4 to 7 of each.
template <class Terms>
HWY_INLINE void joinFour(HalfRows d, hn::Vec<HalfRows>* sums, double* out) {
#if HWY_TARGET == HWY_SCALAR // which has no halves
    (void)d, (void)sums, (void)out;
#else
    const auto a = Terms::join(d, sums[0], sums[1]);
    const auto b = Terms::join(d, sums[2], sums[3]);
    const auto c = Terms::join(d, sums[4], sums[5]);
    const auto e = Terms::join(d, sums[6], sums[7]);
    const auto ac = Terms::join(
            d, hn::ConcatLowerLower(d, c, a), hn::ConcatUpperUpper(d, c, a));
    const auto be = Terms::join(
            d, hn::ConcatLowerLower(d, e, b), hn::ConcatUpperUpper(d, e, b));
    hn::StoreU(
            Terms::join(
                    d,
                    hn::InterleaveLower(d, ac, be),
                    hn::InterleaveUpper(d, ac, be)),
            d,
            out);
#endif
}

#ifdef FAISS_BITS_WHOLE_ROWS

/// The joined sums of eight rows whose slots are one vector each.
template <class Terms>
HWY_INLINE void joinEight(
        WholeRows d,
        const hn::Vec<WholeRows>* sums,
        double* out) {
    using RowVec = hn::Vec<WholeRows>;
    // Two rows, four slots of each; then four rows, two slots of each.
    const auto halves = [d](RowVec a, RowVec b) HWY_ATTR {
        return Terms::join(
                d,
                hn::ConcatLowerLower(d, b, a),
                hn::ConcatUpperUpper(d, b, a));
    };
    const auto quarters = [d](RowVec a, RowVec b) HWY_ATTR {
        return Terms::join(
                d,
                RowVec{_mm512_shuffle_f64x2(a.raw, b.raw, 0x88)},
                RowVec{_mm512_shuffle_f64x2(a.raw, b.raw, 0xdd)});
    };
    const RowVec even =
            quarters(halves(sums[0], sums[2]), halves(sums[4], sums[6]));
    const RowVec odd =
            quarters(halves(sums[1], sums[3]), halves(sums[5], sums[7]));
    hn::StoreU(
            Terms::join(
                    d,
                    hn::InterleaveLower(d, even, odd),
                    hn::InterleaveUpper(d, even, odd)),
            d,
            out);
}

#endif

/// Rows that meet a query at a time, and what comes next.
template <class T>
struct RowGroup {
    const T* rows[kSideBySide];
    const T* ahead[kSideBySide];
    int valid; ///< the others repeat the last
    const double* query;
    const double* queryAhead;
};

/// Of the rows of a group, on their way to the first-level cache at a time:
/// more would leave it before they are read.
constexpr int kBytesAhead = 1 << 13;

/// Fetches what is so far ahead of rows that are longer: in these, and at their
/// end in the next ones. Some components of one row at a time, as a pointer for
/// each row is more than there are registers, and all rows at once more misses
/// than can be under way. `add(p)` for the slots at p, of whole pieces: returns
/// where they end.
template <class T, int kRows, class Add>
HWY_INLINE int addLongRows(
        const RowGroup<T>& group,
        int depth,
        const Add& add) {
    constexpr int kPiece = 64;
    constexpr int kSteps = kPiece / kCanonicalSlots;
    constexpr int kLine = 64 / int(sizeof(T));
    constexpr int kAhead = kBytesAhead / int(sizeof(T)) / kRows;
    constexpr int kPerStep = kRows * kPiece / kSteps;
    const int inside = (depth - kAhead) / kPiece * kPiece;
    const T* const* rows = group.rows;
    int shift = kAhead, p = 0;
    for (; p + kPiece <= depth; p += kPiece) {
        if (p == inside) {
            rows = group.ahead;
            shift = -inside;
        }
        for (int step = 0; step < kSteps; ++step) {
            const T* from = rows[step * kRows / kSteps] + p + shift +
                    step * kPerStep % kPiece;
            for (int i = 0; i < kPerStep; i += kLine) {
                __builtin_prefetch(from + i);
            }
            add(p + step * kCanonicalSlots);
        }
    }
    return p;
}

/// A pointer that is read from memory every time. More pointers than there are
/// registers for are kept in vector registers by GCC, and the moves from there
/// take a port that conversions and sums need (docs/design/cpu_rescoring.md).
template <class T>
HWY_INLINE const T* reloaded(const T* const& pointer) {
    return *const_cast<const T* const volatile*>(&pointer);
}

/// Sums of some rows and one query, or of rows and themselves; meanwhile
/// fetches what is ahead. Lists of indices in place of loops: arrays whose
/// indices are constants from the start stay in registers.
template <
        class Terms,
        bool kSelf,
        bool kLong,
        class D,
        class T,
        size_t... kSum,
        size_t... kVec>
HWY_INLINE void sumRowsOf(
        std::index_sequence<kSum...>,
        std::index_sequence<kVec...>,
        const RowGroup<T>& group,
        int depth,
        const CanonicalPowers& power,
        double* out) {
    using RowVec = hn::Vec<D>;
    const D d;
    const double* query = group.query;
    constexpr int kLanes = rowLanes<D>();
    constexpr int kRowVecs = rowVecs<D>();
    constexpr int kRows = int(sizeof...(kSum)) / kRowVecs;
    RowVec sums[] = {(void(kSum), hn::Zero(d))...};
    const T* const row[] = {group.rows[kSum / kRowVecs]...};
    const auto accumulate = [&](RowVec sum, RowVec x, RowVec q) HWY_ATTR {
        return Terms::add(d, sum, x, kSelf ? x : q, power);
    };
    const auto addSlots = [&](int p) HWY_ATTR {
        if (!kSelf) {
            __builtin_prefetch(group.queryAhead + p);
        }
        const RowVec q[] = {
                kSelf ? hn::Zero(d)
                      : hn::LoadU(d, query + p + int(kVec) * kLanes)...};
        ((sums[kSum] = accumulate(
                  sums[kSum],
                  loadWide(d, row[kSum] + p + int(kSum % kRowVecs) * kLanes),
                  q[kSum % kRowVecs])),
         ...);
    };
    int p = 0;
    if constexpr (kLong) {
        p = addLongRows<T, kRows>(group, depth, addSlots);
    }
    for (; p + kCanonicalSlots <= depth; p += kCanonicalSlots) {
        // A line is 64 bytes: every other time for float. Not all at once, as
        // few misses can be under way.
        if (!kLong && p % (64 / int(sizeof(T))) == 0) {
            for (int r = 0; r < kRows; ++r) {
                __builtin_prefetch(reloaded(group.ahead[r]) + p);
            }
        }
        addSlots(p);
    }
    if (p < depth) {
        const int left = depth - p;
        const RowVec q[] = {
                kSelf ? hn::Zero(d)
                      : hn::LoadU(d, query + p + int(kVec) * kLanes)...};
        ((sums[kSum] = accumulate(
                  sums[kSum],
                  loadRowEnd(
                          d,
                          row[kSum] + p + int(kSum % kRowVecs) * kLanes,
                          std::clamp(
                                  left - int(kSum % kRowVecs) * kLanes,
                                  0,
                                  kLanes)),
                  q[kSum % kRowVecs])),
         ...);
    }
    if constexpr (kLanes == 4) {
        joinFour<Terms>(d, sums, out);
        if constexpr (kRows > 4) {
            joinFour<Terms>(d, sums + 8, out + 4);
        }
#ifdef FAISS_BITS_WHOLE_ROWS
    } else if constexpr (kLanes == 8 && kRows == 8) {
        joinEight<Terms>(d, sums, out);
#endif
    } else {
        for (int r = 0; r < kRows; ++r) {
            RowVec slots[kRowVecs];
            std::copy_n(sums + r * kRowVecs, kRowVecs, slots);
            out[r] = joinHalves<Terms>(d, joinVectors<Terms>(d, slots));
        }
    }
}

template <class Terms, bool kSelf, class D, class T>
HWY_INLINE void sumRows(
        const RowGroup<T>& group,
        int depth,
        const CanonicalPowers& power,
        double* out) {
    constexpr int kRowVecs = rowVecs<D>();
    using Vecs = std::make_index_sequence<kRowVecs>;
    constexpr int kFew = kSideBySide / 2 < 4 ? kSideBySide : 4;
    if (kFew < kSideBySide && group.valid <= kFew) {
        using Sums = std::make_index_sequence<kFew * kRowVecs>;
        sumRowsOf<Terms, kSelf, false, D>(
                Sums(), Vecs(), group, depth, power, out);
        std::fill(out + kFew, out + kSideBySide, out[kFew - 1]);
        return;
    }
    using Sums = std::make_index_sequence<kSideBySide * kRowVecs>;
    if (!kSelf && depth * kSideBySide * int(sizeof(T)) > kBytesAhead * 3 / 2) {
        sumRowsOf<Terms, kSelf, true, D>(
                Sums(), Vecs(), group, depth, power, out);
        return;
    }
    sumRowsOf<Terms, kSelf, false, D>(Sums(), Vecs(), group, depth, power, out);
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
