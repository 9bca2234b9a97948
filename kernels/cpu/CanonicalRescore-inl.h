// Canonical distances of a few vectors, and what fused sums say of them.

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/CanonicalSums-inl.h"

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

template <class T>
void prepareQuery(const T* row, int depth, CanonicalQuery& query) {
    const RowTag d;
    using RowVec = hn::Vec<RowTag>;
    constexpr int kLanes = rowLanes<RowTag>(), kRowVecs = rowVecs<RowTag>();
    RowVec squares[kRowVecs], absolutes[kRowVecs];
    for (int v = 0; v < kRowVecs; ++v) {
        squares[v] = absolutes[v] = hn::Zero(d);
    }
    for (int p = 0; p < depth; p += kCanonicalSlots) {
        FAISS_BITS_UNROLL_SUMS
        for (int v = 0; v < kRowVecs; ++v) {
            const int at = p + v * kLanes;
            const int count = std::clamp(depth - at, 0, kLanes);
            const RowVec x = count == kLanes ? loadWide(d, row + at)
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
template <class D>
HWY_INLINE bool distancesOfProducts(
        double (&sums)[kSideBySide],
        const double (&squares)[kSideBySide],
        double querySquares,
        double share) {
    const D d;
    bool alike = true;
    for (int r = 0; r < kSideBySide; r += rowLanes<D>()) {
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
template <class D>
HWY_INLINE bool areCanonical(const double (&sums)[kSideBySide], double share) {
    const D d;
    bool alike = true;
    for (int r = 0; r < kSideBySide; r += rowLanes<D>()) {
        const auto sum = hn::LoadU(d, sums + r);
        alike = roundAlike(d, sum, hn::Mul(sum, hn::Set(d, share))) && alike;
    }
    return alike;
}

/// Keys of the rows of a group. `triesLeft`: of what is less work than
/// canonical distances, and mostly leads to them.
struct TriesLeft {
    idx_t products, fused;
};
template <KernelMetric kMetric, class D, class T>
HWY_INLINE void rescoreGroup(
        const RescoreJob<T>& job,
        const RowGroup<T>& group,
        const CandidateId<T>* ids,
        double querySquares,
        const CanonicalPowers& power,
        TriesLeft& triesLeft,
        T* keys) {
    using Terms = decltype(canonicalTerms<kMetric, T>());
    const D d;
    double sums[kSideBySide], squares[kSideBySide];
    const bool isFull = group.valid == kSideBySide;
    if (job.vectorSquares && isFull) {
        FAISS_BITS_UNROLL_SUMS
        for (int r = 0; r < kSideBySide; ++r) {
            squares[r] = job.vectorSquares[ids[r]];
        }
    } else if (job.vectorSquares) {
        for (int r = 0; r < kSideBySide; ++r) {
            squares[r] = job.vectorSquares[ids[std::min(r, group.valid - 1)]];
        }
    }
    bool done = false;
    if constexpr (triesFused<kMetric, T>()) {
        if (triesLeft.products > 0) {
            sumRows<FusedProduct, false, D>(group, job.depth, power, sums);
            done = distancesOfProducts<D>(
                    sums, squares, querySquares, fusedProductShare(job.depth));
            triesLeft.products -= !done;
        }
        if (!done && triesLeft.fused > 0) {
            sumRows<FusedSquares, false, D>(group, job.depth, power, sums);
            done = areCanonical<D>(sums, fusedShare(job.depth));
            triesLeft.fused -= !done;
        }
    }
    if (!done) {
        sumRows<Terms, false, D>(group, job.depth, power, sums);
    }
    if constexpr (kMetric == KernelMetric::Cosine) {
        if (!job.vectorSquares) {
            sumRows<Terms, true, D>(group, job.depth, power, squares);
        }
    }
    HWY_ALIGN T some[kSideBySide];
    T* const to = isFull ? keys : some;
    for (int r = 0; r < kSideBySide; r += rowLanes<D>()) {
        auto distance = hn::LoadU(d, sums + r);
        if constexpr (kMetric == KernelMetric::Cosine) {
            distance = cosineOf(
                    d, distance, hn::LoadU(d, squares + r), querySquares);
        }
        storeKeys<kMetric>(d, distance, to + r);
    }
    for (int r = 0; !isFull && r < group.valid; ++r) {
        keys[r] = some[r];
    }
}

template <KernelMetric kMetric, class D, class T>
void rescore(const RescoreJob<T>& job) {
    const CanonicalPowers power(job.power);
    const RescoreList<T>* list = job.lists;
    const RescoreList<T>* const end = list + job.numLists;
    if (list == end) {
        return;
    }
    // An eighth of all: beyond, to try what may fail is not worth it.
    idx_t total = 0;
    for (const RescoreList<T>* each = list; each < end; ++each) {
        total += each->count;
    }
    TriesLeft triesLeft;
    triesLeft.fused = 2 + total / (8 * kSideBySide);
    triesLeft.products = job.vectorSquares ? triesLeft.fused : 0;
    RowGroup<T> group;
    const auto lookAhead = [&](const RescoreList<T>& from, idx_t first) {
        group.queryAhead = from.query.components;
        if (from.rows) {
            for (int r = 0; r < kSideBySide; ++r) {
                group.ahead[r] = from.rows[std::min(first + r, from.count - 1)];
            }
            return;
        }
        if (first + kSideBySide <= from.count) {
            FAISS_BITS_UNROLL_SUMS
            for (int r = 0; r < kSideBySide; ++r) {
                group.ahead[r] = job.vectors.row(from.ids[first + r]);
            }
            return;
        }
        for (int r = 0; r < kSideBySide; ++r) {
            group.ahead[r] = job.vectors.row(
                    from.ids[std::min(first + r, from.count - 1)]);
        }
    };
    lookAhead(*list, 0);
    for (; list < end; ++list) {
        for (idx_t first = 0; first < list->count; first += kSideBySide) {
            group.valid =
                    int(std::min<idx_t>(kSideBySide, list->count - first));
            std::copy_n(group.ahead, kSideBySide, group.rows);
            group.query = group.queryAhead;
            if (first + kSideBySide < list->count) {
                lookAhead(*list, first + kSideBySide);
            } else if (list + 1 < end) {
                lookAhead(list[1], 0);
            }
            rescoreGroup<kMetric, D>(
                    job,
                    group,
                    list->ids ? list->ids + first : nullptr,
                    list->query.squares,
                    power,
                    triesLeft,
                    list->keys + first);
        }
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
    RowGroup<T> group = {};
    for (idx_t begin = 0; begin < count; begin += kSideBySide) {
        group.valid = int(std::min<idx_t>(kSideBySide, count - begin));
        for (int r = 0; r < kSideBySide; ++r) {
            group.rows[r] =
                    vectors.row(first + begin + std::min(r, group.valid - 1));
            group.ahead[r] = vectors.row(
                    first + std::min(begin + kSideBySide + r, count - 1));
        }
        sumRows<Terms, true, RowTag>(group, depth, power, sums);
        std::copy_n(sums, group.valid, to + begin);
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
