// Canonical distances of a few vectors: the lanes are the slots, and several
// vectors go side by side, which hides the latency of their additions.

#include <hwy/highway.h>

#include <algorithm>

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

/// Vectors of SlotVec that hold a sum, and vectors that go side by side: eight
/// chains of additions.
constexpr int kSlotVecs = kCanonicalSlots / slotLanes();
constexpr int kSideBySide = slotLanes() > 1 ? slotLanes() : 2;

/// Sums of some rows and one query, or of rows and themselves.
/// Meanwhile fetches `ahead`.
template <class Terms, bool kSelf, class T>
HWY_INLINE void sumRows(
        const double* query,
        const T* const (&rows)[kSideBySide],
        const T* const (&ahead)[kSideBySide],
        int depth,
        const CanonicalPowers& power,
        double (&out)[kSideBySide]) {
    const SlotTag d;
    SlotVec sums[kSideBySide][kSlotVecs];
    FAISS_BITS_UNROLL_SUMS
    for (int r = 0; r < kSideBySide; ++r) {
        FAISS_BITS_UNROLL_SUMS
        for (int v = 0; v < kSlotVecs; ++v) {
            sums[r][v] = hn::Zero(d);
        }
    }
    int p = 0;
    for (; p + kCanonicalSlots <= depth; p += kCanonicalSlots) {
        // A line is 64 bytes: every other time for float. Not all at once, as
        // few misses can be under way.
        if (p % (64 / int(sizeof(T))) == 0) {
            FAISS_BITS_UNROLL_SUMS
            for (int r = 0; r < kSideBySide; ++r) {
                __builtin_prefetch(ahead[r] + p);
            }
        }
        FAISS_BITS_UNROLL_SUMS
        for (int v = 0; v < kSlotVecs; ++v) {
            const int at = p + v * slotLanes();
            const SlotVec q = kSelf ? hn::Zero(d) : hn::LoadU(d, query + at);
            FAISS_BITS_UNROLL_SUMS
            for (int r = 0; r < kSideBySide; ++r) {
                const SlotVec x = loadWide(d, rows[r] + at);
                sums[r][v] = Terms::add(d, sums[r][v], x, kSelf ? x : q, power);
            }
        }
    }
    for (int v = 0; p + v * slotLanes() < depth; ++v) {
        const int at = p + v * slotLanes();
        const int count = std::min(depth - at, slotLanes());
        const SlotVec q = kSelf ? hn::Zero(d) : hn::LoadU(d, query + at);
        FAISS_BITS_UNROLL_SUMS
        for (int r = 0; r < kSideBySide; ++r) {
            const SlotVec x = loadWideFirst(d, rows[r] + at, count);
            // Not sums[r][v]: an index that varies puts the sums into memory.
            FAISS_BITS_UNROLL_SUMS
            for (int i = 0; i < kSlotVecs; ++i) {
                if (i == v) {
                    sums[r][i] =
                            Terms::add(d, sums[r][i], x, kSelf ? x : q, power);
                }
            }
        }
    }
    FAISS_BITS_UNROLL_SUMS
    for (int r = 0; r < kSideBySide; ++r) {
        out[r] = joinHalves<Terms>(d, joinVectors<Terms>(d, sums[r]));
    }
}

template <class T>
void prepareQuery(const T* row, int depth, CanonicalQuery& query) {
    const SlotTag d;
    SlotVec squares[kSlotVecs], absolutes[kSlotVecs];
    for (int v = 0; v < kSlotVecs; ++v) {
        squares[v] = absolutes[v] = hn::Zero(d);
    }
    for (int p = 0; p < depth; p += kCanonicalSlots) {
        FAISS_BITS_UNROLL_SUMS
        for (int v = 0; v < kSlotVecs; ++v) {
            const int at = p + v * slotLanes();
            const int count = std::clamp(depth - at, 0, slotLanes());
            const SlotVec x = count == slotLanes()
                    ? loadWide(d, row + at)
                    : loadWideFirst(d, row + at, count);
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

template <KernelMetric kMetric, class T>
void rescore(const RescoreJob<T>& job) {
    using Terms = decltype(canonicalTerms<kMetric>());
    const CanonicalPowers power(job.power);
    const double share = fusedShare(job.depth);
    const T* rows[kSideBySide];
    const T* ahead[kSideBySide];
    double sums[kSideBySide], squares[kSideBySide] = {};
    for (idx_t first = 0; first < job.count; first += kSideBySide) {
        const int valid = int(std::min<idx_t>(kSideBySide, job.count - first));
        for (int r = 0; r < kSideBySide; ++r) {
            rows[r] = job.vectors.row(job.ids[first + std::min(r, valid - 1)]);
            ahead[r] = job.vectors.row(
                    job.ids[std::min(first + kSideBySide + r, job.count - 1)]);
        }
        const double* query = job.query.components;
        bool alike = false;
        if constexpr (triesFused<kMetric, T>()) {
            sumRows<FusedSquares, false>(
                    query, rows, ahead, job.depth, power, sums);
            alike = true;
            for (const double sum : sums) {
                alike = alike && roundsAlike(sum, share);
            }
        }
        if (!alike) {
            sumRows<Terms, false>(query, rows, ahead, job.depth, power, sums);
        }
        if constexpr (kMetric == KernelMetric::Cosine) {
            sumRows<Terms, true>(query, rows, ahead, job.depth, power, squares);
        }
        for (int r = 0; r < valid; ++r) {
            const double distance = kMetric == KernelMetric::Cosine
                    ? cosineOf(sums[r], squares[r], job.query.squares)
                    : sums[r];
            job.keys[first + r] = keyOf<kMetric, T>(distance);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
