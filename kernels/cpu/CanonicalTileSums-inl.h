// Sums of canonical distances of packed queries and packed vectors: the lanes
// are vectors, and the slots are registers.

#include <hwy/highway.h>

#include <type_traits>

#include "kernels/cpu/Canonical-inl.h"
#include "kernels/cpu/Loops-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_CANONICALTILESUMS_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_CANONICALTILESUMS_INL_H_
#undef FAISS_BITS_KERNELS_CPU_CANONICALTILESUMS_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_CANONICALTILESUMS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Queries that meet a vector of vectors at a time: 24 of 32 registers hold
/// their slots, or 8 of 16. Logarithms need many themselves.
template <KernelMetric kMetric>
constexpr int canonicalRows() {
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
    return kMetric == KernelMetric::JensenShannon ? 1 : 3;
#else
    return 1;
#endif
}

/// Sums of kRows queries [depth][queryStep] and as many vectors as there are
/// lanes, [depth][lanes]; of these and themselves with kSelf.
template <class Terms, int kRows, bool kSelf>
HWY_INLINE void sumLanes(
        const double* HWY_RESTRICT queries,
        idx_t queryStep,
        const double* HWY_RESTRICT vectors,
        int depth,
        const CanonicalPowers& power,
        SlotVec (&out)[kRows]) {
    const SlotTag d;
    SlotVec sums[kRows][kCanonicalSlots];
    FAISS_BITS_UNROLL_SUMS
    for (int r = 0; r < kRows; ++r) {
        FAISS_BITS_UNROLL_SUMS
        for (int s = 0; s < kCanonicalSlots; ++s) {
            sums[r][s] = hn::Zero(d);
        }
    }
    const double* q = queries;
    const double* x = vectors;
    int left = depth;
    for (; left >= kCanonicalSlots; left -= kCanonicalSlots) {
        FAISS_BITS_UNROLL_SUMS
        for (int s = 0; s < kCanonicalSlots; ++s) {
            const SlotVec wide = hn::Load(d, x + s * slotLanes());
            FAISS_BITS_UNROLL_SUMS
            for (int r = 0; r < kRows; ++r) {
                sums[r][s] = Terms::add(
                        d,
                        sums[r][s],
                        wide,
                        kSelf ? wide : hn::Set(d, q[s * queryStep + r]),
                        power);
            }
        }
        q += kCanonicalSlots * queryStep;
        x += kCanonicalSlots * slotLanes();
    }
    FAISS_BITS_UNROLL_SUMS
    for (int s = 0; s < kCanonicalSlots; ++s) {
        if (s < left) {
            const SlotVec wide = hn::Load(d, x + s * slotLanes());
            FAISS_BITS_UNROLL_SUMS
            for (int r = 0; r < kRows; ++r) {
                sums[r][s] = Terms::add(
                        d,
                        sums[r][s],
                        wide,
                        kSelf ? wide : hn::Set(d, q[s * queryStep + r]),
                        power);
            }
        }
    }
    FAISS_BITS_UNROLL_SUMS
    for (int r = 0; r < kRows; ++r) {
        out[r] = joinVectors<Terms>(d, sums[r]);
    }
}

/// A panel [depth][tileVectors] as float64: [tileVectors /
/// lanes][depth][lanes].
template <class T>
void widenPanel(const T* panel, int depth, double* to) {
    const SlotTag d;
    constexpr int kWidth = tileVectors<T>();
    for (int first = 0; first < kWidth; first += slotLanes()) {
        for (idx_t p = 0; p < depth; ++p) {
            hn::Store(loadWide(d, panel + p * kWidth + first), d, to);
            to += slotLanes();
        }
    }
}

/// Sums of fused squares of kRows queries [depth][queryStep] and a whole panel,
/// as widenPanel leaves it. They need no slots, and so fewer registers.
template <int kRows, int kVecs>
HWY_INLINE void sumFused(
        const double* HWY_RESTRICT queries,
        idx_t queryStep,
        const double* HWY_RESTRICT panel,
        int depth,
        const CanonicalPowers& power,
        SlotVec (&out)[kRows][kVecs]) {
    const SlotTag d;
    SlotVec sums[kRows][kVecs]; // not `out`, which is memory
    FAISS_BITS_UNROLL_SUMS
    for (int r = 0; r < kRows; ++r) {
        FAISS_BITS_UNROLL_SUMS
        for (int v = 0; v < kVecs; ++v) {
            sums[r][v] = hn::Zero(d);
        }
    }
    const idx_t vecStep = idx_t(depth) * slotLanes();
    for (int p = 0; p < depth; ++p) {
        SlotVec x[kVecs];
        FAISS_BITS_UNROLL_SUMS
        for (int v = 0; v < kVecs; ++v) {
            x[v] = hn::Load(d, panel + v * vecStep);
        }
        FAISS_BITS_UNROLL_SUMS
        for (int r = 0; r < kRows; ++r) {
            const SlotVec q = hn::Set(d, queries[r]);
            FAISS_BITS_UNROLL_SUMS
            for (int v = 0; v < kVecs; ++v) {
                sums[r][v] = FusedSquares::add(d, sums[r][v], x[v], q, power);
            }
        }
        queries += queryStep;
        panel += slotLanes();
    }
    FAISS_BITS_UNROLL_SUMS
    for (int r = 0; r < kRows; ++r) {
        FAISS_BITS_UNROLL_SUMS
        for (int v = 0; v < kVecs; ++v) {
            out[r][v] = sums[r][v];
        }
    }
}

/// What the rows of a tile need against one vector of vectors.
struct CanonicalPanel {
    const double* queries; ///< [depth][tileQueries]
    const double* vectors; ///< [depth][lanes]
    const double* querySquares;
    SlotVec vectorSquares;
    int depth;
};

template <KernelMetric kMetric, int kRows, class T>
HWY_INLINE void computeCanonical(
        const CanonicalPanel& panel,
        const CanonicalPowers& power,
        T* to) {
    using Terms = decltype(canonicalTerms<kMetric, T>());
    const SlotTag d;
    constexpr int kTile = tileQueries<T>();
    SlotVec sums[kRows];
    sumLanes<Terms, kRows, false>(
            panel.queries, kTile, panel.vectors, panel.depth, power, sums);
    using Divisors = decltype(canonicalDivisors<kMetric>());
    SlotVec divisors[kRows];
    if constexpr (!std::is_void_v<Divisors>) {
        sumLanes<Divisors, kRows, false>(
                panel.queries,
                kTile,
                panel.vectors,
                panel.depth,
                power,
                divisors);
    }
    FAISS_BITS_UNROLL_SUMS
    for (int r = 0; r < kRows; ++r) {
        if constexpr (kMetric == KernelMetric::Cosine) {
            sums[r] = cosineOf(
                    d, sums[r], panel.vectorSquares, panel.querySquares[r]);
        } else if constexpr (kMetric == KernelMetric::JensenShannon) {
            sums[r] = hn::Mul(hn::Set(d, 0.5), sums[r]);
        } else if constexpr (!std::is_void_v<Divisors>) {
            sums[r] = quotientOf(d, sums[r], divisors[r]);
        }
        storeKeys<kMetric>(d, sums[r], to + r * tileVectors<T>());
    }
}

/// Sums of squares of the queries of some panels, canonical.
template <class T>
void sumQuerySquares(const double* panels, int rows, int depth, double* to) {
    constexpr int kTile = tileQueries<T>();
    for (int row = 0; row < rows; ++row) {
        const double* q =
                panels + idx_t(row / kTile) * depth * kTile + row % kTile;
        double sums[1][kCanonicalSlots] = {};
        for (idx_t p = 0; p < depth; ++p) {
            const double component = q[p * kTile];
            double& sum = sums[0][p % kCanonicalSlots];
            sum = canonical::add(sum, canonical::mul(component, component));
        }
        to[row] = canonical::joinSlots<canonical::AddedTerms>(sums);
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
