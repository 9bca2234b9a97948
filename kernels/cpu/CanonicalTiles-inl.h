// Canonical distances of all pairs of packed queries and packed vectors, for
// queries whose candidates were not proved to be enough: the lanes are
// vectors, and the slots are registers.

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

#include "kernels/cpu/Canonical-inl.h"
#include "kernels/cpu/CanonicalProducts-inl.h"
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
    FAISS_BITS_UNROLL_SUMS
    for (int r = 0; r < kRows; ++r) {
        if constexpr (kMetric == KernelMetric::Cosine) {
            sums[r] = cosineOf(
                    d, sums[r], panel.vectorSquares, panel.querySquares[r]);
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

/// Is any value of some rows under its filter? One that equals it comes too
/// late, and where most vectors are alike there are many.
template <class T>
HWY_INLINE bool anyUnder(
        const Sink<T>& sink,
        idx_t firstRow,
        int rows,
        const T* values) {
    const hn::ScalableTag<T> d;
    for (int row = 0; row < rows; ++row) {
        const auto limit = hn::Set(d, sink.filter[firstRow + row]);
        auto any = hn::Lt(hn::Load(d, values), limit);
        for (int v = 1; v < kTileWidth; ++v) {
            any = hn::Or(
                    any, hn::Lt(hn::Load(d, values + v * lanesOf<T>()), limit));
        }
        if (!hn::AllFalse(d, any)) {
            return true;
        }
        values += tileVectors<T>();
    }
    return false;
}

template <KernelMetric kMetric, class T>
void runCanonicalTiles(const TileJob<T>& job) {
    using Terms = decltype(canonicalTerms<kMetric, T>());
    const SlotTag d;
    constexpr int kTile = tileQueries<T>();
    constexpr int kWidth = tileVectors<T>();
    constexpr int kRows = canonicalRows();
    constexpr int kVecs = kWidth / slotLanes();
    constexpr bool kIsCosine = kMetric == KernelMetric::Cosine;
    constexpr bool kTriesProducts = triesProducts<kMetric, T>();
    constexpr bool kIsProduct = kMetric == KernelMetric::Product;
    static_assert(kTile % kRows == 0);
    const CanonicalPowers power(double(job.power));
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
    } else if (kTriesProducts) {
        for (int i = 0; i < queryPanels; ++i) {
            sumPanelSquares<kTile>(
                    queries.get() + idx_t(i) * job.depth * kTile,
                    job.depth,
                    querySquares.get() + i * kTile);
        }
    }
    AlignedBuffer<double> panel(idx_t(job.depth) * kWidth);
    const SlotVec share = hn::Set(d, fusedShare(job.depth));
    const double productShare = fusedProductShare(job.depth);
    std::vector<DoubleTerms> queryTerms;
    for (int row = 0; kTriesProducts && row < queryPanels * kTile; ++row) {
        queryTerms.emplace_back(
                querySquares.get()[row], productShare, kIsProduct);
    }
    // Of products: the queries, for L2 times two.
    AlignedBuffer<double> factors(kTriesProducts ? queryValues : 0);
    for (idx_t i = 0; kTriesProducts && i < queryValues; ++i) {
        factors.get()[i] = (kIsProduct ? 1 : 2) * queries.get()[i];
    }
    HWY_ALIGN double lows[kWidth], errors[kWidth];
    // An eighth of all: beyond, to try them is not worth it.
    idx_t fusedLeft = 16 + job.rows * job.columns / (8 * slotLanes());
    idx_t productsLeft = kTriesProducts ? fusedLeft : 0;
    bool force = anyTakesAll(sink, job.firstRow, job.rows);
    // Of a tile, for all rows of a panel.
    HWY_ALIGN T values[kTile * kWidth];
    for (idx_t begin = 0; begin < job.columns; begin += kWidth) {
        widenPanel(job.vectors + begin * job.depth, job.depth, panel.get());
        SlotVec squares[kVecs];
        for (int v = 0; v < kVecs; ++v) {
            squares[v] = hn::Zero(d);
            if constexpr (kIsCosine) {
                SlotVec own[1];
                const double* x =
                        panel.get() + idx_t(v) * job.depth * slotLanes();
                sumLanes<Terms, 1, true>(x, 0, x, job.depth, power, own);
                squares[v] = own[0];
            }
        }
        if (productsLeft > 0) {
            panelTerms<kWidth>(
                    panel.get(),
                    job.depth,
                    productShare,
                    kIsProduct,
                    lows,
                    errors);
        }
        for (int i = 0; i < queryPanels; ++i) {
            const int rows = std::min(kTile, job.rows - i * kTile);
            const double* ofPanel =
                    queries.get() + idx_t(i) * job.depth * kTile;
            const auto compute = [&](auto count, int row, int v) HWY_ATTR {
                CanonicalPanel part;
                part.queries = ofPanel + row;
                part.vectors = panel.get() + idx_t(v) * job.depth * slotLanes();
                part.querySquares = querySquares.get() + i * kTile + row;
                part.vectorSquares = squares[v];
                part.depth = job.depth;
                computeCanonical<kMetric, decltype(count)::value>(
                        part, power, values + row * kWidth + v * slotLanes());
            };
            bool done = false;
            if constexpr (kTriesProducts) {
                constexpr int kRowsOfProducts = productRows();
                static_assert(kTile % kRowsOfProducts == 0);
                done = productsLeft > 0;
                for (int row = 0; done && row < rows; row += kRowsOfProducts) {
                    uint32_t inDoubt = keysOfProducts<kRowsOfProducts, kVecs>(
                            factors.get() + idx_t(i) * job.depth * kTile + row,
                            kTile,
                            queryTerms.data() + i * kTile + row,
                            {panel.get(), lows, errors, job.depth},
                            values + row * kWidth);
                    for (; inDoubt; inDoubt &= inDoubt - 1) {
                        const int of = row + std::countr_zero(inDoubt);
                        if (of >= rows) {
                            break; // rows that are not there
                        }
                        for (int v = 0; v < kVecs; ++v) {
                            compute(std::integral_constant<int, 1>(), of, v);
                        }
                        productsLeft -= kVecs;
                    }
                }
            }
            if (done) {
                // All of the tile is known.
            } else if (triesFused<kMetric, T>() && fusedLeft > 0) {
                constexpr int kFused = HWY_TARGET == HWY_AVX2 ? 2 : 3;
                static_assert(kTile % kFused == 0 || !HWY_NATIVE_FMA);
                for (int row = 0; row < rows; row += kFused) {
                    SlotVec sums[kFused][kVecs];
                    sumFused<kFused, kVecs>(
                            ofPanel + row,
                            kTile,
                            panel.get(),
                            job.depth,
                            power,
                            sums);
                    for (int r = 0; r < kFused; ++r) {
                        for (int v = 0; v < kVecs; ++v) {
                            if (roundAlike(
                                        d,
                                        sums[r][v],
                                        hn::Mul(sums[r][v], share))) {
                                storeKeys<kMetric>(
                                        d,
                                        sums[r][v],
                                        values + (row + r) * kWidth +
                                                v * slotLanes());
                            } else {
                                compute(std::integral_constant<int, 1>(),
                                        row + r,
                                        v);
                                --fusedLeft;
                            }
                        }
                    }
                }
            } else {
                for (int v = 0; v < kVecs; ++v) {
                    for (int row = 0; row < rows; row += kRows) {
                        compute(std::integral_constant<int, kRows>(), row, v);
                    }
                }
            }
            const idx_t firstRow = job.firstRow + i * kTile;
            if (force || anyUnder(sink, firstRow, rows, values)) {
                emitTile<T>(
                        sink,
                        firstRow,
                        rows,
                        {values,
                         job.firstId + begin,
                         int(std::min<idx_t>(kWidth, job.columns - begin))},
                        force);
            }
        }
        if (force) {
            force = anyTakesAll(sink, job.firstRow, job.rows);
        }
    }
}

} // namespace HWY_NAMESPACE
} // namespace faiss_bits::cpu
HWY_AFTER_NAMESPACE();

#endif
