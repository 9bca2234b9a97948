// Canonical distances of a few vectors: the lanes are the slots, and several
// vectors go side by side, which hides the latency of their additions.

#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "kernels/cpu/Canonical-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_CANONICALRESCORE_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_CANONICALRESCORE_INL_H_
#undef FAISS_BITS_KERNELS_CPU_CANONICALRESCORE_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_CANONICALRESCORE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Half the slots at most: float32 components become 512-bit vectors at half
/// the speed of 256-bit ones (Zen 4).
using RowTag = hn::CappedTag<double, kCanonicalSlots / 2>;
using RowVec = hn::Vec<RowTag>;

constexpr int rowLanes() {
    return int(hn::MaxLanes(RowTag()));
}

/// Vectors of RowVec that hold the slots of a sum, and rows that go side by
/// side: 16 of 32 registers, 8 of 16, or what hides some latency.
constexpr int kRowVecs = kCanonicalSlots / rowLanes();
constexpr int kSideBySide = rowLanes() < 4 ? 2 : HWY_TARGET <= HWY_AVX3 ? 8 : 4;

/// The first `count` components of a row, zeros behind.
template <class T>
HWY_INLINE RowVec loadRowEnd(RowTag d, const T* from, int count) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 // never read what the mask hides
    const hn::Rebind<T, RowTag> narrow;
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
HWY_INLINE void joinFour(RowTag d, RowVec* sums, double* out) {
#if HWY_TARGET == HWY_SCALAR // which has no halves
    (void)d, (void)sums, (void)out;
#else
    const RowVec a = Terms::join(d, sums[0], sums[1]);
    const RowVec b = Terms::join(d, sums[2], sums[3]);
    const RowVec c = Terms::join(d, sums[4], sums[5]);
    const RowVec e = Terms::join(d, sums[6], sums[7]);
    const RowVec ac = Terms::join(
            d, hn::ConcatLowerLower(d, c, a), hn::ConcatUpperUpper(d, c, a));
    const RowVec be = Terms::join(
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

/// Sums of some rows and one query, or of rows and themselves; meanwhile
/// fetches `ahead`. Lists of indices in place of loops: arrays whose indices
/// are constants from the start stay in registers.
template <class Terms, bool kSelf, class T, size_t... kSum, size_t... kVec>
HWY_INLINE void sumRowsOf(
        std::index_sequence<kSum...>,
        std::index_sequence<kVec...>,
        const double* query,
        const T* const* rows,
        const T* const* ahead,
        int depth,
        const CanonicalPowers& power,
        double* out) {
    const RowTag d;
    constexpr int kLanes = rowLanes();
    constexpr int kRows = int(sizeof...(kSum)) / kRowVecs;
    RowVec sums[] = {(void(kSum), hn::Zero(d))...};
    const T* const row[] = {rows[kSum / kRowVecs]...};
    const auto accumulate = [&](RowVec sum, RowVec x, RowVec q) HWY_ATTR {
        return Terms::add(d, sum, x, kSelf ? x : q, power);
    };
    int p = 0;
    for (; p + kCanonicalSlots <= depth; p += kCanonicalSlots) {
        // A line is 64 bytes: every other time for float. Not all at once, as
        // few misses can be under way.
        if (p % (64 / int(sizeof(T))) == 0) {
            for (int r = 0; r < kRows; ++r) {
                __builtin_prefetch(ahead[r] + p);
            }
        }
        const RowVec q[] = {
                kSelf ? hn::Zero(d)
                      : hn::LoadU(d, query + p + int(kVec) * kLanes)...};
        ((sums[kSum] = accumulate(
                  sums[kSum],
                  loadWide(d, row[kSum] + p + int(kSum % kRowVecs) * kLanes),
                  q[kSum % kRowVecs])),
         ...);
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
    } else {
        for (int r = 0; r < kRows; ++r) {
            RowVec slots[kRowVecs];
            std::copy_n(sums + r * kRowVecs, kRowVecs, slots);
            out[r] = joinHalves<Terms>(d, joinVectors<Terms>(d, slots));
        }
    }
}

/// Rows that are met at a time, and those that come next.
template <class T>
struct RowGroup {
    const T* rows[kSideBySide];
    const T* ahead[kSideBySide];
    int valid; ///< the others repeat the last
};

template <class Terms, bool kSelf, class T>
HWY_INLINE void sumRows(
        const RowGroup<T>& group,
        const double* query,
        int depth,
        const CanonicalPowers& power,
        double* out) {
    using Vecs = std::make_index_sequence<kRowVecs>;
    constexpr int kFew = kSideBySide / 2 < 4 ? kSideBySide : 4;
    if (kFew < kSideBySide && group.valid <= kFew) {
        sumRowsOf<Terms, kSelf>(
                std::make_index_sequence<kFew * kRowVecs>(),
                Vecs(),
                query,
                group.rows,
                group.ahead,
                depth,
                power,
                out);
        std::fill(out + kFew, out + kSideBySide, out[kFew - 1]);
        return;
    }
    sumRowsOf<Terms, kSelf>(
            std::make_index_sequence<kSideBySide * kRowVecs>(),
            Vecs(),
            query,
            group.rows,
            group.ahead,
            depth,
            power,
            out);
}

template <class T>
void prepareQuery(const T* row, int depth, CanonicalQuery& query) {
    const RowTag d;
    RowVec squares[kRowVecs], absolutes[kRowVecs];
    for (int v = 0; v < kRowVecs; ++v) {
        squares[v] = absolutes[v] = hn::Zero(d);
    }
    for (int p = 0; p < depth; p += kCanonicalSlots) {
        FAISS_BITS_UNROLL_SUMS
        for (int v = 0; v < kRowVecs; ++v) {
            const int at = p + v * rowLanes();
            const int count = std::clamp(depth - at, 0, rowLanes());
            const RowVec x = count == rowLanes()
                    ? loadWide(d, row + at)
                    : loadRowEnd(d, row + at, count);
            hn::StoreU(x, d, query.components + at);
            squares[v] = hn::Add(squares[v], hn::Mul(x, x));
            absolutes[v] = hn::Add(absolutes[v], hn::Abs(x));
        }
    }
    query.squares = joinHalves<CanonicalProduct>(
            d, joinVectors<CanonicalProduct>(d, squares));
    query.absolutes = joinHalves<CanonicalProduct>(
            d, joinVectors<CanonicalProduct>(d, absolutes));
}

/// Turns sums of products into squared distances. True if all have the float32
/// of the canonical ones.
HWY_INLINE bool distancesOfProducts(
        double (&sums)[kSideBySide],
        const double (&squares)[kSideBySide],
        double querySquares,
        double share) {
    const RowTag d;
    bool alike = true;
    for (int r = 0; r < kSideBySide; r += rowLanes()) {
        const auto size =
                hn::Add(hn::LoadU(d, squares + r), hn::Set(d, querySquares));
        const auto product = hn::LoadU(d, sums + r);
        const auto distance = hn::Sub(size, hn::Add(product, product));
        hn::StoreU(distance, d, sums + r);
        alike = roundAlike(d, distance, hn::Mul(size, hn::Set(d, share))) &&
                alike;
    }
    return alike;
}

/// Are they the canonical ones, when rounded?
HWY_INLINE bool areCanonical(const double (&sums)[kSideBySide], double share) {
    const RowTag d;
    bool alike = true;
    for (int r = 0; r < kSideBySide; r += rowLanes()) {
        const auto sum = hn::LoadU(d, sums + r);
        alike = roundAlike(d, sum, hn::Mul(sum, hn::Set(d, share))) && alike;
    }
    return alike;
}

template <KernelMetric kMetric, class T>
void rescore(const RescoreJob<T>& job) {
    using Terms = decltype(canonicalTerms<kMetric, T>());
    const RowTag d;
    const CanonicalPowers power(job.power);
    const double share = fusedShare(job.depth);
    const double productShare = fusedProductShare(job.depth);
    // An eighth of all: beyond, to try what is not canonical is not worth it.
    const idx_t tries = 2 + job.count / (8 * kSideBySide);
    idx_t productsLeft = job.vectorSquares ? tries : 0, fusedLeft = tries;
    RowGroup<T> group;
    double sums[kSideBySide], squares[kSideBySide];
    HWY_ALIGN T keys[kSideBySide];
    const auto lookAhead = [&](idx_t first) HWY_ATTR {
        for (int r = 0; r < kSideBySide; ++r) {
            group.ahead[r] = job.vectors.row(
                    job.ids[std::min(first + r, job.count - 1)]);
        }
    };
    if (job.count > 0) {
        lookAhead(0);
    }
    for (idx_t first = 0; first < job.count; first += kSideBySide) {
        group.valid = int(std::min<idx_t>(kSideBySide, job.count - first));
        std::copy_n(group.ahead, kSideBySide, group.rows);
        lookAhead(first + kSideBySide);
        const double* query = job.query.components;
        if (job.vectorSquares) {
            for (int r = 0; r < kSideBySide; ++r) {
                squares[r] =
                        job.vectorSquares
                                [job.ids[first + std::min(r, group.valid - 1)]];
            }
        }
        bool done = false;
        if constexpr (triesFused<kMetric, T>()) {
            if (productsLeft > 0) {
                sumRows<FusedProduct, false>(
                        group, query, job.depth, power, sums);
                done = distancesOfProducts(
                        sums, squares, job.query.squares, productShare);
                productsLeft -= !done;
            }
            if (!done && fusedLeft > 0) {
                sumRows<FusedSquares, false>(
                        group, query, job.depth, power, sums);
                done = areCanonical(sums, share);
                fusedLeft -= !done;
            }
        }
        if (!done) {
            sumRows<Terms, false>(group, query, job.depth, power, sums);
        }
        if constexpr (kMetric == KernelMetric::Cosine) {
            if (!job.vectorSquares) {
                sumRows<Terms, true>(group, query, job.depth, power, squares);
            }
        }
        for (int r = 0; r < kSideBySide; r += rowLanes()) {
            auto distance = hn::LoadU(d, sums + r);
            if constexpr (kMetric == KernelMetric::Cosine) {
                distance = cosineOf(
                        d,
                        distance,
                        hn::LoadU(d, squares + r),
                        job.query.squares);
            }
            storeKeys<kMetric>(d, distance, keys + r);
        }
        std::copy_n(keys, group.valid, job.keys + first);
    }
}

/// Canonical sums of squares of the rows first .. first + count - 1.
template <class T>
void sumSquares(
        const RowView<T>& vectors,
        idx_t first,
        idx_t count,
        int depth,
        double* to) {
    using Terms = decltype(canonicalTerms<KernelMetric::Product, T>());
    const CanonicalPowers power(2);
    double sums[kSideBySide];
    RowGroup<T> group;
    for (idx_t begin = 0; begin < count; begin += kSideBySide) {
        group.valid = int(std::min<idx_t>(kSideBySide, count - begin));
        for (int r = 0; r < kSideBySide; ++r) {
            group.rows[r] =
                    vectors.row(first + begin + std::min(r, group.valid - 1));
            group.ahead[r] = vectors.row(
                    first + std::min(begin + kSideBySide + r, count - 1));
        }
        sumRows<Terms, true>(group, nullptr, depth, power, sums);
        std::copy_n(sums, group.valid, to + begin);
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
