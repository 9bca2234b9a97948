// Canonical distances of all pairs of packed queries and packed vectors, for
// queries whose candidates were not proved to be enough: the lanes are
// vectors, and the slots are registers.

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/Canonical-inl.h"
#include "kernels/cpu/Loops-inl.h"

#if defined(FAISS_BITS_KERNELS_CPU_CANONICALTILES_INL_H_) == \
        defined(HWY_TARGET_TOGGLE)
#ifdef FAISS_BITS_KERNELS_CPU_CANONICALTILES_INL_H_
#undef FAISS_BITS_KERNELS_CPU_CANONICALTILES_INL_H_
#else
#define FAISS_BITS_KERNELS_CPU_CANONICALTILES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace faiss_bits::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Queries that meet a vector of vectors at a time: 24 of 32 registers hold
/// their slots, or 8 of 16.
constexpr int canonicalRows() {
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
    return 3;
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
        const canonical::Power& power,
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

/// Keys of as many vectors as there are lanes.
template <KernelMetric kMetric, class T>
HWY_INLINE void storeKeys(SlotVec distances, T* to) {
    const SlotTag d;
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
    // Their conversion to float32 makes the largest number of infinity.
    HWY_ALIGN double lanes[slotLanes()];
    hn::Store(distances, d, lanes);
    for (int i = 0; i < slotLanes(); ++i) {
        to[i] = keyOf<kMetric, T>(lanes[i]);
    }
#else
    const hn::Rebind<T, SlotTag> narrow;
    const auto zero = hn::Zero(narrow);
    if constexpr (sizeof(T) == sizeof(double)) {
        const auto keys = hn::Add(distances, zero);
        hn::StoreU(isNegated<kMetric>() ? hn::Neg(keys) : keys, narrow, to);
    } else {
        const auto keys = hn::Add(hn::DemoteTo(narrow, distances), zero);
        hn::StoreU(isNegated<kMetric>() ? hn::Neg(keys) : keys, narrow, to);
    }
#endif
}

/// Rows of a tile from `row` on, against one vector of vectors.
template <KernelMetric kMetric, int kRows, class T>
HWY_INLINE void computeCanonical(
        const double* queries,
        const double* vectors,
        const double* querySquares,
        SlotVec vectorSquares,
        int depth,
        const canonical::Power& power,
        T* to) {
    using Terms = decltype(canonicalTerms<kMetric>());
    const SlotTag d;
    SlotVec sums[kRows];
    sumLanes<Terms, kRows, false>(
            queries, tileQueries<T>(), vectors, depth, power, sums);
    FAISS_BITS_UNROLL_SUMS
    for (int r = 0; r < kRows; ++r) {
        if constexpr (kMetric == KernelMetric::Cosine) {
            const auto squares =
                    hn::Mul(vectorSquares, hn::Set(d, querySquares[r]));
            const auto zero = hn::Zero(d);
            sums[r] = hn::IfThenElse(
                    hn::Eq(squares, zero),
                    zero,
                    hn::Div(sums[r], hn::Sqrt(squares)));
        } else {
            (void)querySquares;
            (void)vectorSquares;
        }
        storeKeys<kMetric>(sums[r], to + r * tileVectors<T>());
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

template <KernelMetric kMetric, class T>
void runCanonicalTiles(const TileJob<T>& job) {
    using Terms = decltype(canonicalTerms<kMetric>());
    const SlotTag d;
    constexpr int kTile = tileQueries<T>();
    constexpr int kWidth = tileVectors<T>();
    constexpr int kRows = canonicalRows();
    constexpr bool kIsCosine = kMetric == KernelMetric::Cosine;
    static_assert(kTile % kRows == 0);
    const canonical::Power power(double(job.power));
    Sink<T>& sink = *job.sink;
    const int queryPanels = (job.rows + kTile - 1) / kTile;
    const idx_t queryValues = idx_t(queryPanels) * job.depth * kTile;
    AlignedBuffer<double> queries(queryValues);
    std::copy_n(job.queries, queryValues, queries.get());
    AlignedBuffer<double> querySquares(queryPanels * kTile);
    std::fill_n(querySquares.get(), queryPanels * kTile, 0.0);
    if (kIsCosine) {
        sumQuerySquares<T>(
                queries.get(), job.rows, job.depth, querySquares.get());
    }
    AlignedBuffer<double> panel(idx_t(job.depth) * kWidth);
    // Of a tile, for all rows of a panel.
    HWY_ALIGN T values[kTile * kWidth];
    for (idx_t begin = 0; begin < job.columns; begin += kWidth) {
        widenPanel(job.vectors + begin * job.depth, job.depth, panel.get());
        SlotVec squares[kWidth / slotLanes()];
        for (int v = 0; v < kWidth / slotLanes(); ++v) {
            squares[v] = hn::Zero(d);
            if constexpr (kIsCosine) {
                SlotVec own[1];
                const double* x =
                        panel.get() + idx_t(v) * job.depth * slotLanes();
                sumLanes<Terms, 1, true>(x, 0, x, job.depth, power, own);
                squares[v] = own[0];
            }
        }
        for (int i = 0; i < queryPanels; ++i) {
            const int rows = std::min(kTile, job.rows - i * kTile);
            for (int v = 0; v < kWidth / slotLanes(); ++v) {
                for (int row = 0; row < rows; row += kRows) {
                    computeCanonical<kMetric, kRows>(
                            queries.get() + idx_t(i) * job.depth * kTile + row,
                            panel.get() + idx_t(v) * job.depth * slotLanes(),
                            querySquares.get() + i * kTile + row,
                            squares[v],
                            job.depth,
                            power,
                            values + row * kWidth + v * slotLanes());
                }
            }
            const idx_t firstRow = job.firstRow + i * kTile;
            emitTile(
                    sink,
                    firstRow,
                    rows,
                    TileRow<T>{
                            values,
                            job.firstId + begin,
                            int(std::min<idx_t>(kWidth, job.columns - begin))},
                    anyTakesAll(sink, firstRow, rows));
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
